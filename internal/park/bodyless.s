// This file lets the package have functions without bodies, which are the runtime's.
