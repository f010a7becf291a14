//! Every policy, sentence by sentence.
