-- waiters returns the first thousand waiters in order of arrival, and the number of all waiters.
local function waiters(list) return typed('lrange', list, 0, 999) or {}, typed('llen', list) or 0 end
