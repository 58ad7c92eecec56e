-- Gives the value of KEYS[1] if its reading began recently enough, else tries
-- to take the lock KEYS[2] for reading it.
--
-- ARGV: how old the value may be, in µs; the caller's token; for how long a
-- lock is held, in ms; the stamp of a value that the caller could not open; how
-- many bytes the largest value has, and the largest that is sent at once. A
-- larger one than the former is nobody's, counts as absent and is not sent; of
-- one above the latter the size is said, so that its reader gives it time.
--
-- A value begins with its stamp: when its reading began and until when it is
-- one, by this server's clock, each as 16 digits of µs. So no other clock
-- decides how old it is. The stamp of a lock is the first half.
-- pcall, because a key may hold anything; then it counts as absent.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local stamp = redis.pcall('GETRANGE', KEYS[1], 0, 31)
if type(stamp) == 'string' then
  local began, last = tonumber(string.sub(stamp, 1, 16)), tonumber(string.sub(stamp, 17))
  local size = redis.call('STRLEN', KEYS[1])
  if #stamp == 32 and stamp ~= ARGV[4] and began and began <= now and last and now <= last and now - began <= tonumber(ARGV[1]) and size <= tonumber(ARGV[5]) then
    if size > tonumber(ARGV[6]) then
      return {'large', stamp, now - began, tostring(size)}
    end
    return {'value', stamp, now - began, redis.call('GETRANGE', KEYS[1], 32, -1)}
  end
end

-- A lock that does not end by itself, or only later than any of ours, is not
-- one of ours.
local left = redis.call('PTTL', KEYS[2])
if left < 0 or left > tonumber(ARGV[3]) then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
  return {'lock', string.format('%016.0f', now), 0, ''}
end
return {'wait', '', 0, ''}
