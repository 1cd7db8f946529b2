// What the store says to Redis, the same to one server and to a cluster: each command is atomic and touches one key.

import { type CommandParser, defineScript, RESP_TYPES } from 'redis'

export interface Commands {
  get(name: string): Promise<Buffer | null>
  getAndDelete(name: string): Promise<Buffer | null>
  /** Writes a record if the one that lives there has `version`, or if none lives there and `version` is empty. */
  put(name: string, version: Buffer, now: number, record: Buffer, keptMs: number): Promise<boolean>
  /** Adds a member to an index, keeps the index as long as that lives, and drops expired members beside it. */
  addMember(index: string, member: string, now: number, keptMs: number): Promise<unknown>
  removeMembers(index: string, members: readonly string[]): Promise<unknown>
  /** The first members of an index from `start` on: `-` for all of them, `(member` for those after it. */
  members(index: string, start: string, count: number): Promise<string[]>
  ping(): Promise<unknown>
}

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

type Argument = string | Buffer

function keyFirst(parser: CommandParser, key: string, ...rest: Argument[]): void {
  parser.pushKey(key)
  parser.push(...rest)
}

export const scripts = {
  put: defineScript({
    SCRIPT: PUT,
    NUMBER_OF_KEYS: 1,
    parseCommand: keyFirst,
    transformReply: (reply: number) => reply === 1,
  }),
  addMember: defineScript({
    SCRIPT: ADD_MEMBER,
    NUMBER_OF_KEYS: 1,
    parseCommand: keyFirst,
    transformReply: (reply: number) => reply,
  }),
}

/** The part of node-redis that its client and its cluster have in common. */
interface CommandingClient {
  withTypeMapping(mapping: { [RESP_TYPES.BLOB_STRING]: BufferConstructor }): {
    get(name: string): Promise<Buffer | null>
    getDel(name: string): Promise<Buffer | null>
  }
  put(name: string, ...rest: Argument[]): Promise<boolean>
  addMember(index: string, ...rest: Argument[]): Promise<number>
  zRem(index: string, members: string[]): Promise<number>
  zRangeByLex(
    index: string,
    min: string,
    max: string,
    options: { LIMIT: { offset: number; count: number } },
  ): Promise<string[]>
  ping(): Promise<string>
}

export function commandsOf(client: CommandingClient): Commands {
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
  return {
    get: name => binary.get(name),
    getAndDelete: name => binary.getDel(name),
    put: (name, version, now, record, keptMs) => client.put(name, version, String(now), record, String(keptMs)),
    addMember: (index, member, now, keptMs) => client.addMember(index, member, String(now), String(keptMs)),
    removeMembers: (index, members) => client.zRem(index, [...members]),
    members: (index, start, count) => client.zRangeByLex(index, start, '+', { LIMIT: { offset: 0, count } }),
    ping: () => client.ping(),
  }
}
