package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.SubscriptionMode;

/**
 * Does with Redisson's locks what it is told on its standard input, a line for each command:
 *
 * <pre>number thread command argument...</pre>
 *
 * Each thread is one of its own, which comes into being with its name. Arguments are encoded as in a URL. The answer to a command
 * is a line with its number and a text, and comes when the command has: commands of different threads run at the same time.
 */
public final class Agent {

    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final RedissonClient redisson;
    private final Map<String, Deque<String>> permits = new ConcurrentHashMap<>();

    private Agent(RedissonClient redisson) {
        this.redisson = redisson;
    }

    /** Arguments: single or cluster, the address of the server, and the watchdog's timeout in milliseconds. */
    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.setThreads(4).setNettyThreads(4).setLockWatchdogTimeout(Long.parseLong(args[2]));
        String address = "redis://" + args[1];
        if (args[0].equals("cluster")) {
            config.useClusterServers().addNodeAddress(address)
                    .setReadMode(ReadMode.MASTER).setSubscriptionMode(SubscriptionMode.MASTER)
                    .setMasterConnectionMinimumIdleSize(2).setSubscriptionConnectionMinimumIdleSize(1);
        } else {
            config.useSingleServer().setAddress(address)
                    .setConnectionMinimumIdleSize(2).setSubscriptionConnectionMinimumIdleSize(1);
        }
        Agent agent = new Agent(Redisson.create(config));
        OUT.println("ready");
        agent.serve();
        System.exit(0);
    }

    private void serve() throws Exception {
        Map<String, BlockingQueue<String[]>> threads = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            if (words[2].equals("asleep")) { // whether the thread waits to be told of a release
                OUT.println(words[0] + " " + asleep(words[1]));
                continue;
            }
            threads.computeIfAbsent(words[1], this::thread).add(words);
        }
    }

    private static boolean asleep(String thread) {
        for (Map.Entry<Thread, StackTraceElement[]> each : Thread.getAllStackTraces().entrySet()) {
            if (each.getKey().getName().equals(thread)) {
                for (StackTraceElement frame : each.getValue()) {
                    if (frame.getClassName().equals("java.util.concurrent.Semaphore")) {
                        // Before that it is not in the semaphore's queue, where a release of all looks for it.
                        Thread.State state = each.getKey().getState();
                        return state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING;
                    }
                }
            }
        }
        return false;
    }

    private BlockingQueue<String[]> thread(String name) {
        BlockingQueue<String[]> commands = new LinkedBlockingQueue<>();
        Thread thread = new Thread(() -> {
            while (true) {
                try {
                    String[] words = commands.take();
                    String answer;
                    try {
                        answer = answer(words);
                    } catch (Throwable e) {
                        answer = "error " + e.toString().replace('\n', ' ').replace('\r', ' ');
                    }
                    OUT.println(words[0] + " " + answer);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return commands;
    }

    private String answer(String[] words) throws Exception {
        if (words[2].equals("owner")) {
            return redisson.getId() + ":" + Thread.currentThread().getId();
        }
        String kind = words[3];
        String name = URLDecoder.decode(words[4], StandardCharsets.UTF_8);
        long[] numbers = new long[words.length - 5];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = Long.parseLong(words[5 + i]);
        }
        if (kind.equals("expirable")) {
            return expirable(words[2], name, numbers);
        } else if (kind.equals("counter")) {
            return counter(words[2], name, numbers);
        }
        RLock lock = lock(kind, name);
        switch (words[2]) {
            case "lock": // lease, or -1 for one that is renewed
                lock.lock(numbers[0], TimeUnit.MILLISECONDS);
                return "true";
            case "try": // time to wait, lease
                return "" + (numbers[0] == 0 && numbers[1] < 0 ? lock.tryLock()
                        : lock.tryLock(numbers[0], numbers[1], TimeUnit.MILLISECONDS));
            case "unlock":
                try {
                    lock.unlock();
                } catch (IllegalMonitorStateException e) {
                    return "false";
                }
                return "true";
            case "force":
                return "" + lock.forceUnlock();
            case "count":
                return "" + lock.getHoldCount();
            case "held":
                return "" + lock.isHeldByCurrentThread();
            case "locked":
                return "" + lock.isLocked();
            case "remain":
                return "" + lock.remainTimeToLive();
            case "token":
                return "" + ((RFencedLock) lock).lockAndGetToken();
            case "stress": // milliseconds, the longest pause outside in microseconds
                return stress(kind, lock, name, numbers[0], numbers[1]);
            default:
                throw new IllegalArgumentException(words[2]);
        }
    }

    /** Does something with a semaphore whose permits have leases. It keeps the ids of those that it has acquired. */
    private String expirable(String command, String name, long[] numbers) throws Exception {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore(name);
        Deque<String> ids = permits.computeIfAbsent(name, n -> new ConcurrentLinkedDeque<>());
        switch (command) {
            case "lock": { // lease, or -1 for ever
                ids.add(numbers[0] < 0 ? semaphore.acquire() : semaphore.acquire(numbers[0], TimeUnit.MILLISECONDS));
                return "true";
            }
            case "try": { // time to wait, lease
                String id = numbers[0] == 0 && numbers[1] < 0 ? semaphore.tryAcquire()
                        : semaphore.tryAcquire(numbers[0], numbers[1], TimeUnit.MILLISECONDS);
                return "" + (id != null && ids.add(id));
            }
            case "unlock":
                return "" + semaphore.tryRelease(ids.remove());
            case "extend": // lease
                return "" + semaphore.updateLeaseTime(ids.peek(), numbers[0], TimeUnit.MILLISECONDS);
            case "size":
                return "" + semaphore.getPermits();
            case "free":
                return "" + semaphore.availablePermits();
            case "init":
                return "" + semaphore.trySetPermits((int) numbers[0]);
            case "resize":
                semaphore.setPermits((int) numbers[0]);
                return "true";
            case "add":
                semaphore.addPermits((int) numbers[0]);
                return "true";
            case "delete":
                return "" + semaphore.delete();
            default:
                throw new IllegalArgumentException(command);
        }
    }

    /** Does something with a semaphore that is a number. */
    private String counter(String command, String name, long[] numbers) throws Exception {
        RSemaphore semaphore = redisson.getSemaphore(name);
        switch (command) {
            case "lock": // permits
                semaphore.acquire((int) numbers[0]);
                return "true";
            case "try": // permits
                return "" + semaphore.tryAcquire((int) numbers[0]);
            case "unlock": // permits
                semaphore.release((int) numbers[0]);
                return "true";
            case "free":
                return "" + semaphore.availablePermits();
            case "drain":
                return "" + semaphore.drainPermits();
            case "init":
                return "" + semaphore.trySetPermits((int) numbers[0]);
            case "add":
                semaphore.addPermits((int) numbers[0]);
                return "true";
            case "delete":
                return "" + semaphore.delete();
            default:
                throw new IllegalArgumentException(command);
        }
    }

    private RLock lock(String kind, String name) {
        switch (kind) {
            case "plain":
                return redisson.getLock(name);
            case "fair":
                return redisson.getFairLock(name);
            case "spin":
                return redisson.getSpinLock(name);
            case "fenced":
                return redisson.getFencedLock(name);
            case "read":
                return redisson.getReadWriteLock(name).readLock();
            case "write":
                return redisson.getReadWriteLock(name).writeLock();
            case "multi": { // plain ones, with commas between their names
                String[] names = name.split(",");
                RLock[] locks = new RLock[names.length];
                for (int i = 0; i < names.length; i++) {
                    locks[i] = redisson.getLock(names[i]);
                }
                return redisson.getMultiLock(locks);
            }
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    /**
     * Takes the lock again and again, up to three times at once. Inside, it leaves a mark that nobody else may have left, and
     * increments a counter without any protection. The answer is how often it was inside, or what went wrong.
     */
    private String stress(String kind, RLock lock, String name, long millis, long pause) throws Exception {
        RBucket<String> inside = redisson.getBucket(name + ":inside", StringCodec.INSTANCE);
        RBucket<Long> counter = redisson.getBucket(name + ":counter", LongCodec.INSTANCE);
        boolean counts = !kind.equals("multi");
        String me = "java " + Thread.currentThread().getName();
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        long n = 0;
        while (System.nanoTime() < end) {
            int depth = random.nextInt(1, 4);
            for (int i = 1; i <= depth; i++) {
                if (!lock.tryLock(60, TimeUnit.SECONDS)) {
                    return "wrong: nothing within a minute";
                }
                if (counts && lock.getHoldCount() != i) {
                    return "wrong: " + lock.getHoldCount() + " holds instead of " + i;
                }
            }
            if (kind.equals("read")) {
                String other = inside.get();
                if (other != null) {
                    return "wrong: a reader met " + other;
                }
            } else {
                String other = inside.getAndSet(me);
                if (other != null) {
                    return "wrong: met " + other;
                }
                Long value = counter.get();
                counter.set(value == null ? 1 : value + 1);
                if (!me.equals(inside.getAndDelete())) {
                    return "wrong: somebody else was inside";
                }
            }
            for (int i = depth; i >= 1; i--) {
                if (counts && lock.getHoldCount() != i) {
                    return "wrong: " + lock.getHoldCount() + " holds instead of " + i;
                }
                lock.unlock();
            }
            n++;
            TimeUnit.MICROSECONDS.sleep(random.nextLong(pause + 1));
        }
        return "" + n;
    }
}
