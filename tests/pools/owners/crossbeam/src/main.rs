// A thread of the parent answers questions, which it gets through a channel of crossbeam. The child sends a question
// through the same channel, but does not have the thread. Repaired: the child starts its own thread, with its own
// channels.
use crossbeam::channel::{unbounded, Receiver, Sender};

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

fn start() -> (Sender<i32>, Receiver<i32>) {
    let (ask, questions) = unbounded();
    let (answer, answers) = unbounded();
    std::thread::spawn(move || {
        for question in questions {
            answer.send(question + 1).unwrap();
        }
    });
    (ask, answers)
}

fn ask_for(channels: &(Sender<i32>, Receiver<i32>), question: i32) -> i32 {
    channels.0.send(question).unwrap();
    channels.1.recv().unwrap()
}

fn main() {
    let channels = start();
    assert_eq!(ask_for(&channels, 1), 2);
    let mut status = 0;
    unsafe {
        let child = fork();
        if child == 0 {
            let told = if cfg!(feature = "repaired") { ask_for(&start(), 2) } else { ask_for(&channels, 2) };
            _exit((told != 3) as i32);
        }
        waitpid(child, &mut status, 0);
    }
    std::process::exit((status != 0) as i32);
}
