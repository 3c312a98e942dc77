package interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** The programs of docs/guides/coming-from/redisson.md. They are compiled, so that the page shows Redisson as it is. */
abstract class ComingFrom {
    abstract void makeReport();

    abstract void write(long token);

    void exclusive(RedissonClient redisson) {
        RLock lock = redisson.getLock("report");
        lock.lock();
        try {
            makeReport();
        } finally {
            lock.unlock();
        }
    }

    void limited(RLock lock) throws InterruptedException {
        if (lock.tryLock(10, 30, TimeUnit.SECONDS)) {
            try {
                makeReport();
            } finally {
                lock.unlock();
            }
        }
    }

    void fenced(RedissonClient redisson) {
        RFencedLock lock = redisson.getFencedLock("report");
        Long token = lock.lockAndGetToken();
        try {
            write(token);
        } finally {
            lock.unlock();
        }
    }
}
