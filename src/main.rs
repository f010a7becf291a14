//! The program: reads the command line and hands over to the library, which can be tested.

use std::process::ExitCode;

/// Events are made and dropped on different threads, which the system's allocator pays for at every event.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::Parser as _;
use tidegate::cli::{self, Cli, Command, Exit};
use tidegate::serve;

fn main() -> ExitCode {
    let Cli { config: file, command } = Cli::parse();
    match command.unwrap_or(Command::Serve) {
        Command::Serve => match cli::load(file.as_deref()) {
            Some(config) => serve::serve(config, file.as_deref()),
            None => Exit::Usage.into(),
        },
        command => actix_rt::System::new().block_on(cli::run(command, file.as_deref())).into(),
    }
}
