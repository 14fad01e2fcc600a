// The workers of rayon's pool compute for the parent. The child does not have these workers. Repaired: the child makes
// a pool of its own.
use rayon::prelude::*;

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

fn sum() -> u64 {
    (0..100_000u64).into_par_iter().map(|x| x % 7).sum()
}

fn sum_in_child() -> u64 {
    if cfg!(feature = "repaired") {
        let own = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        return own.install(sum);
    }
    sum()
}

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();
    let first = sum();
    let mut status = 0;
    unsafe {
        let child = fork();
        if child == 0 {
            _exit((sum_in_child() != first) as i32);
        }
        waitpid(child, &mut status, 0);
    }
    std::process::exit((status != 0) as i32);
}
