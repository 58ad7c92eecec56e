-- Says for ARGV[2] ms that what the lease KEYS[1] is for is done, if the token
-- ARGV[1] holds it.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], 'done', 'PX', ARGV[2])
  return 1
end
return 0
