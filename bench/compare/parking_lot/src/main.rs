//! The workloads of package internal/bench with the locks of parking_lot.
//!
//! Arguments: the number of rounds, how long each benchmark runs in each round, in nanoseconds, and
//! the names of benchmarks. The Go side knows the workload and the lock of each name. The output is
//! a JSON object, with the nanoseconds of an operation in each round for each name.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::lock_api::{self, RawMutex};
use parking_lot::{Condvar, FairMutex, Mutex, ReentrantMutex, RwLock};

/// Does so many operations, or a few more, and returns the nanoseconds of one.
type Run = Box<dyn FnMut(usize) -> f64>;

fn prepare(name: &str) -> Option<Run> {
    Some(match name {
        "uncontended" => {
            let m = Mutex::new(());
            looped(move || drop(m.lock()))
        }
        "uncontended_fair" => {
            let m = FairMutex::new(());
            looped(move || drop(m.lock()))
        }
        "uncontended_reentrant" => {
            let m = ReentrantMutex::new(());
            looped(move || drop(m.lock()))
        }
        "uncontended_rwlock" => {
            let l = RwLock::new(());
            looped(move || drop(l.write()))
        }
        "reentry" => {
            let m = ReentrantMutex::new(());
            timed(move |n| {
                let _held = m.lock();
                for _ in 0..n {
                    drop(black_box(&m).lock());
                }
            })
        }
        "read" => {
            let l = RwLock::new(());
            looped(move || drop(l.read()))
        }
        "reentrant_read" => {
            let l = RwLock::new(());
            timed(move |n| {
                let _held = l.read();
                for _ in 0..n {
                    drop(black_box(&l).read_recursive());
                }
            })
        }
        "two_readers" => {
            let l = Arc::new(RwLock::new(()));
            Box::new(move |n| {
                let l = l.clone();
                together(2, move || {
                    for _ in 0..n / 2 {
                        drop(black_box(&l).read());
                    }
                }) / (n / 2 * 2).max(1) as f64
            })
        }
        "turns" => {
            let (l, guarded) = (RwLock::new(()), Guarded::default());
            looped(move || {
                let reading = l.read();
                black_box(guarded.read());
                drop(reading);
                let writing = l.write();
                guarded.write();
                drop(writing);
            })
        }
        "try_lock" => {
            let m = Mutex::new(());
            looped(move || drop(m.try_lock()))
        }
        "try_lock_rwlock" => {
            let l = RwLock::new(());
            looped(move || drop(l.try_write()))
        }
        "contended2" => contest::<parking_lot::RawMutex>(2, false),
        "fifo8" => contest::<parking_lot::RawFairMutex>(8, false),
        "fifo8_work" => contest::<parking_lot::RawFairMutex>(8, true),
        "work64" => contest::<parking_lot::RawMutex>(64, true),
        "work64_fair" => contest::<parking_lot::RawFairMutex>(64, true),
        "ping_pong" => ping_pong(),
        _ => return None,
    })
}

fn timed(mut run: impl FnMut(usize) + 'static) -> Run {
    Box::new(move |n| {
        let start = Instant::now();
        run(n);
        start.elapsed().as_nanos() as f64 / n as f64
    })
}

fn looped(operation: impl Fn() + 'static) -> Run {
    timed(move |n| {
        for _ in 0..n {
            black_box(&operation)();
        }
    })
}

/// Runs a function on so many threads, and returns the nanoseconds from the start of the first to
/// the end of the last.
fn together(threads: usize, run: impl Fn() + Send + Sync + 'static) -> f64 {
    let (run, ready) = (Arc::new(run), Arc::new(Barrier::new(threads)));
    let started: Vec<_> = (0..threads)
        .map(|_| {
            let (run, ready) = (run.clone(), ready.clone());
            thread::spawn(move || {
                ready.wait();
                let start = Instant::now();
                run();
                (start, Instant::now())
            })
        })
        .collect();
    let times = join(started);
    let start = times.iter().map(|t| t.0).min();
    let end = times.iter().map(|t| t.1).max();
    match (start, end) {
        (Some(start), Some(end)) => (end - start).as_nanos() as f64,
        _ => 0.0,
    }
}

fn join<T>(threads: Vec<thread::JoinHandle<T>>) -> Vec<T> {
    let panicked = "a thread of a benchmark panicked";
    threads
        .into_iter()
        .map(|t| t.join().expect(panicked))
        .collect()
}

/// What a read-write lock guards: two numbers that each write advances together.
#[derive(Default)]
struct Guarded {
    a: AtomicU64,
    b: AtomicU64,
}

impl Guarded {
    fn write(&self) {
        let n = self.a.load(SeqCst) + 1;
        self.a.store(n, SeqCst);
        self.b.store(n, SeqCst);
    }

    fn read(&self) -> u64 {
        self.a.load(SeqCst) ^ self.b.load(SeqCst)
    }
}

/// What the lock of a contest guards, not on the cache lines of the lock, as in the Go harness.
#[repr(align(128))]
struct Section {
    left: usize,
    acquired: usize,
}

/// Threads that take one lock in loops, with 300 ns inside and 300 ns outside, or with nothing.
/// Threads start less evenly than goroutines, so each takes the lock a hundred times at least.
fn contest<R: RawMutex + Send + Sync + 'static>(threads: usize, works: bool) -> Run {
    let work = if works { rounds_of_300_ns() } else { 0 };
    Box::new(move |n| {
        let n = n.max(100 * threads);
        let section = Section {
            left: n,
            acquired: 0,
        };
        let lock = Arc::new(lock_api::Mutex::<R, Section>::new(section));
        // All threads wait for the lock, and then begin at once.
        let held = lock.lock();
        let started: Vec<_> = (0..threads)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || loop {
                    let mut section = lock.lock();
                    if section.left == 0 {
                        return;
                    }
                    section.left -= 1;
                    let acquired = section.acquired;
                    busy(work);
                    section.acquired = acquired + 1;
                    drop(section);
                    busy(work);
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        drop(held);
        join(started);
        let elapsed = start.elapsed();
        let acquired = lock.lock().acquired;
        if acquired != n {
            fail(&format!(
                "mutual exclusion violated: {n} acquisitions left a counter at {acquired}"
            ));
        }
        elapsed.as_nanos() as f64 / n as f64
    })
}

/// Two threads that take turns. Each waits for its turn, and signals the other.
fn ping_pong() -> Run {
    Box::new(|n| {
        let game = Arc::new((Mutex::new(0), [Condvar::new(), Condvar::new()]));
        let players = AtomicU64::new(0);
        together(2, move || {
            let me = players.fetch_add(1, SeqCst) as usize;
            let (lock, conditions) = &*game;
            let mut turn = lock.lock();
            for _ in 0..n {
                while *turn != me {
                    conditions[me].wait(&mut turn);
                }
                *turn = 1 - me;
                conditions[1 - me].notify_one();
            }
        }) / n as f64
    })
}

/// How many rounds of busy take 300 ns. The shortest of many measurements counts, since others lose
/// the processor.
fn rounds_of_300_ns() -> usize {
    static ROUNDS: OnceLock<usize> = OnceLock::new();
    *ROUNDS.get_or_init(|| {
        const MANY: usize = 10_000;
        let best = (0..200)
            .map(|_| {
                let start = Instant::now();
                busy(MANY);
                start.elapsed().as_nanos()
            })
            .min();
        let round = best.unwrap_or(1).max(1) as f64 / MANY as f64;
        ((300.0 / round).round() as usize).max(1)
    })
}

/// Computes for n rounds. Each needs the result of the one before.
#[inline(never)]
fn busy(n: usize) {
    let mut x = n as u64 | 1;
    for _ in 0..n {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

/// Returns the number of operations that take about the time slot, without the start of threads.
fn size(run: &mut Run, slot: f64) -> usize {
    let mut n = 1;
    loop {
        let took = (run(n) * n as f64).max(1.0);
        if took >= slot / 4.0 || n >= 1 << 30 {
            return ((n as f64 * (slot / took).min(4.0)) as usize).max(1);
        }
        n = (n as f64 * (1.0 + slot / took).min(8.0)) as usize;
    }
}

fn fail(why: &str) -> ! {
    eprintln!("error: {why}");
    std::process::exit(1);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<u64>().ok());
    let (Some(rounds), Some(slot)) = (number(0), number(1)) else {
        fail("want the number of rounds, nanoseconds of a round, and names of benchmarks");
    };
    let mut subjects = Vec::new();
    for name in &args[2..] {
        let Some(mut run) = prepare(name) else {
            fail(&format!("no benchmark is named {name}"));
        };
        let n = size(&mut run, slot as f64);
        subjects.push((name, run, n, Vec::new()));
    }
    // In turns, as on the Go side: every second round goes backwards.
    for _ in 0..rounds {
        for (_, run, n, costs) in &mut subjects {
            costs.push(run(*n));
        }
        subjects.reverse();
    }
    let figures: Vec<String> = subjects
        .iter()
        .map(|(name, _, _, costs)| format!("  {name:?}: {costs:?}"))
        .collect();
    println!("{{\n{}\n}}", figures.join(",\n"));
}
