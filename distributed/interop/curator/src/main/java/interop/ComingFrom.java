package interop;

import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** The programs of docs/guides/coming-from/curator.md. They are compiled, so that the page shows Curator as it is. */
abstract class ComingFrom {
    abstract void makeReport();

    abstract void export();

    void exclusive(CuratorFramework client) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, "/locks/report");
        if (mutex.acquire(10, TimeUnit.SECONDS)) {
            try {
                makeReport();
            } finally {
                mutex.release();
            }
        }
    }

    void permits(CuratorFramework client) throws Exception {
        InterProcessSemaphoreV2 exports = new InterProcessSemaphoreV2(client, "/exports", 4);
        Lease lease = exports.acquire();
        try {
            export();
        } finally {
            exports.returnLease(lease);
        }
    }
}
