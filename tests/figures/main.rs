//! Prints what one call of the hook costs.
fn main() {}
