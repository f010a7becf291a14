//! The program: hands over to the library, which can be tested.

fn main() {}
