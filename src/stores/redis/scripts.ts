// What Redis does in one step for us. Each script touches keys of one slot only, so that a cluster runs it too.

import { type CommandParser, defineScript } from 'redis'

/** The version and the expiry are where redis-record.ts has them. */
const PUT = `
local head = redis.call('GETRANGE', KEYS[1], 0, 23)
local lives = #head == 24 and struct.unpack('<d', head, 17) > tonumber(ARGV[2])
if (lives and string.sub(head, 1, 8) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1`

/**
 * The expiry is where label-index.ts has it. Keys are hashes, so the neighbours of a new one are a random sample: with
 * three of them looked at for each that is added, there is about one expired member to two living ones at most.
 */
const ADD_MEMBER = `
redis.call('ZADD', KEYS[1], 0, ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
for _, member in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], '(' .. ARGV[1], '+', 'LIMIT', 0, 3)) do
  if tonumber(string.sub(member, -24, -9)) <= tonumber(ARGV[2]) then redis.call('ZREM', KEYS[1], member) end
end
return 1`

/** More expired members are dropped than are added, so that they cannot pile up. */
const ADD_NEWEST = `
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[3], 'LIMIT', 0, 10)
for _, index in ipairs(KEYS) do
  if redis.call('PTTL', index) < tonumber(ARGV[4]) then redis.call('PEXPIRE', index, ARGV[4]) end
  if #expired > 0 then redis.call('ZREM', index, unpack(expired)) end
end
return 1`

const APPEND_TO_STREAM = `
for n = 2, #ARGV do redis.call('XADD', KEYS[1], '*', 'event', ARGV[n]) end
redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[1])
return 1`

export type Argument = string | Buffer

function keyFirst(parser: CommandParser, key: string, ...rest: Argument[]): void {
  parser.pushKey(key)
  parser.push(...rest)
}

function twoKeysFirst(parser: CommandParser, one: string, other: string, ...rest: Argument[]): void {
  parser.pushKey(one)
  keyFirst(parser, other, ...rest)
}

const asItIs = (reply: number) => reply

export const scripts = {
  put: defineScript({
    SCRIPT: PUT,
    NUMBER_OF_KEYS: 1,
    parseCommand: keyFirst,
    transformReply: (reply: number) => reply === 1,
  }),
  addMember: defineScript({ SCRIPT: ADD_MEMBER, NUMBER_OF_KEYS: 1, parseCommand: keyFirst, transformReply: asItIs }),
  addNewest: defineScript({
    SCRIPT: ADD_NEWEST,
    NUMBER_OF_KEYS: 2,
    parseCommand: twoKeysFirst,
    transformReply: asItIs,
  }),
  appendToStream: defineScript({
    SCRIPT: APPEND_TO_STREAM,
    NUMBER_OF_KEYS: 1,
    parseCommand: keyFirst,
    transformReply: asItIs,
  }),
}
