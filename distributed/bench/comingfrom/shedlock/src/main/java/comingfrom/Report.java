package comingfrom;

import net.javacrumbs.shedlock.core.LockAssert;
import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.springframework.scheduling.annotation.Scheduled;

/** The program of docs/guides/coming-from/shedlock.md. It is compiled, so that the page shows ShedLock as it is. */
public abstract class Report {
    abstract void makeReport();

    @Scheduled(cron = "0 */15 * * * *")
    @SchedulerLock(name = "report", lockAtMostFor = "10m")
    public void report() {
        LockAssert.assertLocked();
        makeReport();
    }
}
