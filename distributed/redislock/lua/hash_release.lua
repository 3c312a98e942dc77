-- Deletes the holder's field, whatever its count. The hash has no other field, and so ends with
-- it. The reply is the number of subscribers that heard it. It is nil if the acquisition did not
-- hold the lock.
--
-- KEYS lock, channel; ARGV acquisition, payload, publish commands
if typed('hdel', KEYS[1], ARGV[1]) ~= 1 then
	return false
end
return publish(3, KEYS[2], ARGV[2])
