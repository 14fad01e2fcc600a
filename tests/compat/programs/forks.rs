use std::process::Command;
use std::sync::{mpsc, Arc, Condvar, Mutex};
use std::thread;

fn main() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (sender, receiver) = mpsc::channel();
    let workers: Vec<_> = (0..6)
        .map(|number| {
            let (gate, sender) = (gate.clone(), sender.clone());
            thread::spawn(move || {
                let mut open = gate.0.lock().unwrap();
                while !*open {
                    open = gate.1.wait(open).unwrap();
                }
                drop(open);
                let output = Command::new("sh").args(["-c", &format!("echo {number}; exit {number}")]).output().unwrap();
                sender.send((number, String::from_utf8(output.stdout).unwrap(), output.status.code())).unwrap();
            })
        })
        .collect();
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    for worker in workers {
        worker.join().unwrap();
    }
    drop(sender);
    let mut answers: Vec<_> = receiver.iter().collect();
    answers.sort();
    println!("{answers:?}");
}
