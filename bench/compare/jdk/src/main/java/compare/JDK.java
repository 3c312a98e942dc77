package compare;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicStampedReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.infra.Blackhole;

/**
 * The workloads of package internal/bench with the locks of the JDK. The Go side knows the workload and the lock of
 * each benchmark by the name of its method.
 *
 * <p>The mode is throughput, of all threads together. The average time would be the mean of the threads' own averages.
 * A thread that hardly gets the lock would count as much as the others there.
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@State(Scope.Benchmark)
public class JDK {
    private final ReentrantLock lock = new ReentrantLock();
    private final ReentrantLock fair = new ReentrantLock(true);
    private final ReentrantReadWriteLock readWrite = new ReentrantReadWriteLock();
    private final StampedLock stamped = new StampedLock();
    private final AtomicStampedReference<Object> reference = new AtomicStampedReference<>(new Object(), 0);

    @Benchmark
    public void uncontended() {
        lock.lock();
        lock.unlock();
    }

    @Benchmark
    public void uncontendedFair() {
        fair.lock();
        fair.unlock();
    }

    @Benchmark
    public void uncontendedReadWrite() {
        readWrite.writeLock().lock();
        readWrite.writeLock().unlock();
    }

    @Benchmark
    public void uncontendedStamped() {
        stamped.unlockWrite(stamped.writeLock());
    }

    /** Locks that the thread of the benchmark holds already. */
    @State(Scope.Thread)
    public static class Held {
        final ReentrantLock lock = new ReentrantLock();
        final ReentrantReadWriteLock readWrite = new ReentrantReadWriteLock();

        @Setup(Level.Iteration)
        public void acquire() {
            lock.lock();
            readWrite.readLock().lock();
        }

        @TearDown(Level.Iteration)
        public void release() {
            readWrite.readLock().unlock();
            lock.unlock();
        }
    }

    @Benchmark
    public void reentry(Held held) {
        held.lock.lock();
        held.lock.unlock();
    }

    @Benchmark
    public void reentrantRead(Held held) {
        held.readWrite.readLock().lock();
        held.readWrite.readLock().unlock();
    }

    @Benchmark
    public void read() {
        readWrite.readLock().lock();
        readWrite.readLock().unlock();
    }

    @Benchmark
    public void readStamped() {
        stamped.unlockRead(stamped.readLock());
    }

    @Benchmark
    public boolean readOptimistic() {
        return stamped.validate(stamped.tryOptimisticRead());
    }

    @Benchmark
    @Threads(2)
    public void twoReaders() {
        read();
    }

    @Benchmark
    @Threads(2)
    public void twoReadersStamped() {
        readStamped();
    }

    @Benchmark
    @Threads(2)
    public boolean twoReadersOptimistic() {
        return readOptimistic();
    }

    /** What a lock guards. JMH keeps other objects off its cache lines. */
    @State(Scope.Benchmark)
    public static class Guarded {
        volatile long a;
        volatile long b;
        long acquired;

        void write() {
            long n = a + 1;
            a = n;
            b = n;
        }

        long read() {
            return a ^ b;
        }
    }

    @Benchmark
    public long turns(Guarded guarded) {
        readWrite.readLock().lock();
        long torn = guarded.read();
        readWrite.readLock().unlock();
        readWrite.writeLock().lock();
        guarded.write();
        readWrite.writeLock().unlock();
        return torn;
    }

    @Benchmark
    public long turnsStamped(Guarded guarded) {
        long stamp = stamped.readLock();
        long torn = guarded.read();
        stamped.unlockRead(stamp);
        stamp = stamped.writeLock();
        guarded.write();
        stamped.unlockWrite(stamp);
        return torn;
    }

    @Benchmark
    public void tryLock() {
        if (lock.tryLock()) {
            lock.unlock();
        }
    }

    @Benchmark
    public void tryLockReadWrite() {
        if (readWrite.writeLock().tryLock()) {
            readWrite.writeLock().unlock();
        }
    }

    /** How much work takes 300 ns. */
    @State(Scope.Benchmark)
    public static class Work {
        long tokens;

        /** The shortest of many measurements counts: the first ones are interpreted, and others lose the processor. */
        @Setup
        public void calibrate() {
            final int many = 10_000;
            long best = Long.MAX_VALUE;
            long begin = System.nanoTime();
            while (System.nanoTime() - begin < 200_000_000) {
                long start = System.nanoTime();
                Blackhole.consumeCPU(many);
                best = Math.min(best, System.nanoTime() - start);
            }
            tokens = Math.max(1, Math.round(300.0 * many / best));
        }

        void work() {
            Blackhole.consumeCPU(tokens);
        }
    }

    /**
     * Threads that contend for a lock, all of them once in each invocation. They are not JMH's own. If there are more
     * threads than processors, JMH counts one that starts late as fast: it has the lock to itself for its short time.
     */
    public abstract static class Contest {
        private final ReentrantLock lock;
        private final Thread[] threads;
        private final int acquisitions;
        private final boolean works;
        private int left;

        Contest(ReentrantLock lock, int threads, int acquisitions, boolean works) {
            this.lock = lock;
            this.threads = new Thread[threads];
            this.acquisitions = acquisitions;
            this.works = works;
        }

        /** Starts the threads behind a lock that the benchmark holds, so that all of them begin at once. */
        @Setup(Level.Invocation)
        public void queue(Guarded guarded, Work work) {
            lock.lock();
            left = acquisitions;
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> contend(guarded, work));
                threads[i].start();
            }
            while (lock.getQueueLength() < threads.length) {
                Thread.onSpinWait();
            }
        }

        private void contend(Guarded guarded, Work work) {
            boolean more = true;
            while (more) {
                lock.lock();
                more = left > 0;
                if (more) {
                    left--;
                    guarded.acquired++;
                    if (works) {
                        work.work();
                    }
                }
                lock.unlock();
                if (works) {
                    work.work();
                }
            }
        }

        void run() throws InterruptedException {
            lock.unlock();
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    @State(Scope.Benchmark)
    public static class Two extends Contest {
        static final int ACQUISITIONS = 200_000;

        public Two() {
            super(new ReentrantLock(), 2, ACQUISITIONS, false);
        }
    }

    @Benchmark
    @OperationsPerInvocation(Two.ACQUISITIONS)
    public void contended2(Two contest) throws InterruptedException {
        contest.run();
    }

    @State(Scope.Benchmark)
    public static class EightInOrder extends Contest {
        static final int ACQUISITIONS = 5_000;

        public EightInOrder() {
            super(new ReentrantLock(true), 8, ACQUISITIONS, false);
        }
    }

    @Benchmark
    @OperationsPerInvocation(EightInOrder.ACQUISITIONS)
    public void fifo8(EightInOrder contest) throws InterruptedException {
        contest.run();
    }

    @State(Scope.Benchmark)
    public static class EightInOrderWithWork extends Contest {
        static final int ACQUISITIONS = 5_000;

        public EightInOrderWithWork() {
            super(new ReentrantLock(true), 8, ACQUISITIONS, true);
        }
    }

    @Benchmark
    @OperationsPerInvocation(EightInOrderWithWork.ACQUISITIONS)
    public void fifo8Work(EightInOrderWithWork contest) throws InterruptedException {
        contest.run();
    }

    @State(Scope.Benchmark)
    public static class Many extends Contest {
        static final int ACQUISITIONS = 50_000;

        public Many() {
            super(new ReentrantLock(), 64, ACQUISITIONS, true);
        }
    }

    @Benchmark
    @OperationsPerInvocation(Many.ACQUISITIONS)
    public void work64(Many contest) throws InterruptedException {
        contest.run();
    }

    @State(Scope.Benchmark)
    public static class ManyInOrder extends Contest {
        static final int ACQUISITIONS = 5_000;

        public ManyInOrder() {
            super(new ReentrantLock(true), 64, ACQUISITIONS, true);
        }
    }

    @Benchmark
    @OperationsPerInvocation(ManyInOrder.ACQUISITIONS)
    public void work64Fair(ManyInOrder contest) throws InterruptedException {
        contest.run();
    }

    /** Two threads that take turns: the one of the benchmark has turn 0, and a partner turn 1. */
    @State(Scope.Benchmark)
    public static class PingPong {
        final ReentrantLock lock = new ReentrantLock();
        final Condition[] conditions = {lock.newCondition(), lock.newCondition()};
        int turn;
        Thread partner;

        /** Waits for a turn, and gives it to the other. The caller holds the lock. */
        void play(int me) throws InterruptedException {
            while (turn != me) {
                conditions[me].await();
            }
            turn = 1 - me;
            conditions[1 - me].signal();
        }

        @Setup
        public void start() {
            partner = new Thread(() -> {
                lock.lock();
                try {
                    while (true) {
                        play(1);
                    }
                } catch (InterruptedException end) {
                    // The partner is not needed any more.
                } finally {
                    lock.unlock();
                }
            });
            partner.start();
        }

        @TearDown
        public void stop() throws InterruptedException {
            partner.interrupt();
            partner.join();
        }
    }

    @Benchmark
    @OperationsPerInvocation(100)
    public void pingPong(PingPong game) throws InterruptedException {
        game.lock.lock();
        try {
            for (int i = 0; i < 100; i++) {
                game.play(0);
            }
        } finally {
            game.lock.unlock();
        }
    }

    @Benchmark
    public boolean compareAndSet() {
        int[] stamp = new int[1];
        Object value = reference.get(stamp);
        return reference.compareAndSet(value, value, stamp[0], stamp[0] + 1);
    }
}
