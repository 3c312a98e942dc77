-- Notes the token, and writes the value if there is one. If a higher token was seen, it does
-- nothing and replies that one. Otherwise the reply is nil. Tokens are compared as text, by length
-- and then by digits, because numbers of a script are exact only up to 2^53.
--
-- KEYS value, fence; ARGV token [value]
local seen, token = redis.call('get', KEYS[2]), ARGV[1]
if seen then
	if not string.find(seen, '^%d+$') then
		return redis.error_reply('FOREIGN the highest token is no number')
	end
	if #seen > #token or #seen == #token and seen > token then
		return seen
	end
end
redis.call('set', KEYS[2], token)
if ARGV[2] then
	redis.call('set', KEYS[1], ARGV[2])
end
return false
