#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| edgecert_fuzz::response(input));
