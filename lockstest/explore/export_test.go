package explore

import "time"

// SetHang sets how long a run may take.
func SetHang(d time.Duration) { hang = d }
