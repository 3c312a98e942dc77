-- Replies how many permits are free.
--
-- KEYS free permits
local value, foreign = number(KEYS[1])
return foreign or value
