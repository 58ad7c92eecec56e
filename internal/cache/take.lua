-- Takes the lease KEYS[1] for ARGV[2] ms with the token ARGV[1], unless another
-- holds it, or has done what it is for no longer than ARGV[3] ms ago: then the
-- key holds the word 'done'.
--
-- What does not end by itself, or only later than any of ours, is not ours.
local held, left = redis.pcall('GET', KEYS[1]), redis.call('PTTL', KEYS[1])
if held == 'done' and left >= 0 and left <= tonumber(ARGV[3]) then return 'done' end
if held ~= 'done' and left >= 0 and left <= tonumber(ARGV[2]) then return 'held' end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'taken'
