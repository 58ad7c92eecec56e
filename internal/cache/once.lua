-- Says whether KEYS[1] was not there, and puts it there for ARGV[1] ms.
-- pcall, because a key may hold anything; then it was there.
if redis.pcall('GET', KEYS[1]) == false then
  redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
  return 1
end
return 0
