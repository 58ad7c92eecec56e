-- Says whether KEYS[1] was not there, and puts it there for ARGV[1] ms.
if redis.call('SET', KEYS[1], '1', 'PX', ARGV[1], 'NX') then return 1 end
return 0
