package interop;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantLock;

/** The programs of docs/guides/coming-from/java-util-concurrent.md. They need no library, and are compiled here. */
abstract class JavaUtilConcurrent {
    final Lock lock = new ReentrantLock(true);
    final Condition notEmpty = lock.newCondition();
    final Deque<String> items = new ArrayDeque<>();

    String take() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (items.isEmpty()) notEmpty.await();
            return items.removeFirst();
        } finally {
            lock.unlock();
        }
    }

    abstract void work();

    void limited() throws InterruptedException, TimeoutException {
        if (!lock.tryLock(1, TimeUnit.SECONDS)) throw new TimeoutException();
        try {
            work();
        } finally {
            lock.unlock();
        }
    }

    abstract int load();

    int downgrade(ReadWriteLock rw, Map<String, Integer> data) {
        rw.writeLock().lock();
        data.put("x", load());
        rw.readLock().lock();
        rw.writeLock().unlock();
        try {
            return data.get("x");
        } finally {
            rw.readLock().unlock();
        }
    }
}
