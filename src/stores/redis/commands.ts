// The commands that the store sends to Redis, to one server or to a cluster. Each command is atomic.

import { type CommandParser, defineScript, RESP_TYPES } from 'redis'
import { MAX_TRIMMED } from '../trail.ts'

export interface Commands {
  get(name: string): Promise<Buffer | null>
  getAndDelete(name: string): Promise<Buffer | null>
  /** Writes a record if the living one has `version`, or if there is no living one and `version` is empty. */
  put(write: PutArguments): Promise<boolean>
  /** Adds a member to an index, keeps the index as long as the member lives, and drops expired members beside it. */
  addMember(index: string, member: string, now: number, ttlMs: number): Promise<unknown>
  /** Adds a member to the indexes by time and by expiry, and drops expired members from both. */
  addNewest(indexes: IndexPair, member: string, expiresAt: number, now: number, ttlMs: number): Promise<unknown>
  removeMembers(index: string, members: readonly string[]): Promise<unknown>
  /** The first members of an index from `start` on: `-` for all of them, `(member` for those after it. */
  members(index: string, start: string, count: number): Promise<string[]>
  /** The last ones up to `start`: `+` for all of them, `(member` for those before it. */
  membersBackwards(index: string, start: string, count: number): Promise<string[]>
  /** How many members have a score above this one. */
  countAbove(index: string, score: number): Promise<number>
  /** Adds events, given as alternating kinds and records, and drops what is beyond `keep`. */
  appendToTrail(names: TrailNames, keep: number, events: readonly Argument[]): Promise<unknown>
  /** The first events of a stream from `start` on: `-` for all of them, `(id` for those after it. */
  events(stream: string, start: string, count: number): Promise<readonly StreamEvent[]>
  /** The last ones up to `start`: `+` for all of them, `(id` for those before it. */
  eventsBackwards(stream: string, start: string, count: number): Promise<readonly StreamEvent[]>
  ping(): Promise<unknown>
}

interface PutArguments {
  readonly name: string
  readonly version: Buffer
  readonly now: number
  readonly record: Buffer
  readonly ttlMs: number
  /** Changes to the indexes in the same step. Absent in a cluster, where they are in other slots. */
  readonly indexes?: IndexChange | undefined
}

/** The index members of a record, and those of the record that it replaces. */
export interface IndexChange {
  readonly newest: IndexPair
  readonly added: IndexMembers
  readonly removed: IndexMembers
  readonly expiresAt: number
}

export interface IndexMembers {
  /** The indexes of its labels. */
  readonly labels: readonly string[]
  readonly member: string
  /** Its member in the index by time; absent if it has none. */
  readonly newest?: string | undefined
}

/** The stream of all events, and the set of their kinds. */
export type TrailNames = readonly [stream: string, kinds: string]

export interface StreamEvent {
  readonly id: Buffer
  readonly message: { readonly event?: Buffer }
}

export type IndexPair = readonly [bySince: string, byExpiry: string]

/** The part that node-redis's client and cluster have in common. */
interface CommandClient {
  withTypeMapping(mapping: { [RESP_TYPES.BLOB_STRING]: BufferConstructor }): BinaryClient
  put(keys: readonly string[], ...rest: Argument[]): Promise<boolean>
  addMember(index: string, ...rest: Argument[]): Promise<number>
  addNewest(bySince: string, byExpiry: string, ...rest: Argument[]): Promise<number>
  appendToTrail(stream: string, kinds: string, ...rest: Argument[]): Promise<number>
  zRem(index: string, members: string[]): Promise<number>
  zRangeByLex(index: string, min: string, max: string, options: { LIMIT: Limit }): Promise<string[]>
  zRange(index: string, min: string, max: string, options: { BY: 'LEX'; REV: true; LIMIT: Limit }): Promise<string[]>
  zCount(index: string, min: string, max: string): Promise<number>
  ping(): Promise<string>
}

/** The commands whose replies are read as bytes. */
interface BinaryClient {
  get(name: string): Promise<Buffer | null>
  getDel(name: string): Promise<Buffer | null>
  xRange(stream: string, start: string, end: string, options: { COUNT: number }): Promise<readonly StreamEvent[] | null>
  xRevRange(
    stream: string,
    end: string,
    start: string,
    options: { COUNT: number },
  ): Promise<readonly StreamEvent[] | null>
}

interface Limit {
  offset: number
  count: number
}

/** All our key names begin with `menshen:`. `prefix` replaces that, also where it determines the slot. */
export function commandsOf(client: CommandClient, prefix: string): Commands {
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
  const commands = plainCommands(client, binary)
  return prefix === 'menshen' ? commands : withPrefix(commands, prefix)
}

function withPrefix(commands: Commands, prefix: string): Commands {
  const named = (name: string) =>
    name.replace(/^menshen:/, () => `${prefix}:`).replace(/^([^{]*)\{menshen:/, (_all, start) => `${start}{${prefix}:`)
  const both = ([one, other]: readonly [string, string]) => [named(one), named(other)] as const
  const labelled = (members: IndexMembers) => ({ ...members, labels: members.labels.map(named) })
  const renamed = (change: IndexChange | undefined) =>
    change && {
      ...change,
      newest: both(change.newest),
      added: labelled(change.added),
      removed: labelled(change.removed),
    }
  return {
    get: name => commands.get(named(name)),
    getAndDelete: name => commands.getAndDelete(named(name)),
    put: write => commands.put({ ...write, name: named(write.name), indexes: renamed(write.indexes) }),
    addMember: (index, ...rest) => commands.addMember(named(index), ...rest),
    addNewest: (indexes, ...rest) => commands.addNewest(both(indexes), ...rest),
    removeMembers: (index, members) => commands.removeMembers(named(index), members),
    members: (index, ...rest) => commands.members(named(index), ...rest),
    membersBackwards: (index, ...rest) => commands.membersBackwards(named(index), ...rest),
    countAbove: (index, score) => commands.countAbove(named(index), score),
    appendToTrail: (names, ...rest) => commands.appendToTrail(both(names), ...rest),
    events: (stream, ...rest) => commands.events(named(stream), ...rest),
    eventsBackwards: (stream, ...rest) => commands.eventsBackwards(named(stream), ...rest),
    ping: commands.ping,
  }
}

function plainCommands(client: CommandClient, binary: BinaryClient): Commands {
  return {
    get: name => binary.get(name),
    getAndDelete: name => binary.getDel(name),
    put({ name, version, now, record, ttlMs, indexes }) {
      const common = { record, version, now: String(now), kept: String(ttlMs) }
      if (!indexes) return client.put([name], ...pairs(common))
      const { newest, added, removed, expiresAt } = indexes
      return client.put(
        [name, ...newest, ...added.labels, ...removed.labels],
        ...pairs({
          ...common,
          expiresAt: String(expiresAt),
          addedLabels: String(added.labels.length),
          member: added.member,
          newestMember: added.newest ?? '',
          removedMember: removed.member,
          removedNewestMember: removed.newest ?? '',
        }),
      )
    },
    addMember: (index, member, now, ttlMs) => client.addMember(index, member, String(now), String(ttlMs)),
    addNewest: (indexes, member, ...times) => client.addNewest(...indexes, member, ...times.map(String)),
    removeMembers: (index, members) => client.zRem(index, [...members]),
    members: (index, start, count) => client.zRangeByLex(index, start, '+', { LIMIT: { offset: 0, count } }),
    membersBackwards: (index, start, count) =>
      client.zRange(index, start, '-', { BY: 'LEX', REV: true, LIMIT: { offset: 0, count } }),
    countAbove: (index, score) => client.zCount(index, `(${score}`, '+inf'),
    appendToTrail: (names, keep, events) =>
      client.appendToTrail(...names, String(keep), String(MAX_TRIMMED), ...events),
    events: async (stream, start, count) => (await binary.xRange(stream, start, '+', { COUNT: count })) ?? [],
    eventsBackwards: async (stream, start, count) =>
      (await binary.xRevRange(stream, start, '-', { COUNT: count })) ?? [],
    ping: () => client.ping(),
  }
}

/** Alternating names and values. */
function pairs(given: Readonly<Record<string, Argument>>): Argument[] {
  return Object.entries(given).flat()
}

// Scripts, each of which Redis runs in one step. Each uses keys of one slot only, so that a cluster can run it; PUT with indexes is
// for a single server.

/** The arguments by their names, as `pairs` sends them. */
const NAMED_ARGUMENTS = `
local given = {}
for at = 1, #ARGV, 2 do given[ARGV[at]] = ARGV[at + 1] end`

/** An index lives as long as its last member. */
const ADD_FUNCTIONS = `
local function addMember(index, member, kept)
  redis.call('ZADD', index, 0, member)
  if redis.call('PTTL', index) < tonumber(kept) then redis.call('PEXPIRE', index, kept) end
end
local function addNewest(bySince, byExpiry, member, expiresAt, kept)
  redis.call('ZADD', byExpiry, expiresAt, member)
  redis.call('ZADD', bySince, 0, member)
  if redis.call('PTTL', bySince) < tonumber(kept) then
    redis.call('PEXPIRE', byExpiry, kept)
    redis.call('PEXPIRE', bySince, kept)
  end
end`

/**
 * indexes.ts defines where the expiry is. Keys are hashes, so the neighbours of a new one are a random sample: with three of them
 * checked per added member, there is at most about one expired member for every two living ones. The index by time drops more
 * expired members than are added, so that they cannot pile up.
 */
const DROP_FUNCTIONS = `
local function dropExpiredNeighbours(index, member, now)
  for _, other in ipairs(redis.call('ZRANGEBYLEX', index, '(' .. member, '+', 'LIMIT', 0, 3)) do
    if tonumber(string.sub(other, -24, -9)) <= tonumber(now) then redis.call('ZREM', index, other) end
  end
end
local function dropExpiredNewest(bySince, byExpiry, now)
  local expired = redis.call('ZRANGEBYSCORE', byExpiry, '-inf', now, 'LIMIT', 0, 10)
  if #expired == 0 then return end
  redis.call('ZREM', bySince, unpack(expired))
  redis.call('ZREM', byExpiry, unpack(expired))
end`

const ADD_MEMBER = `${ADD_FUNCTIONS}${DROP_FUNCTIONS}
addMember(KEYS[1], ARGV[1], ARGV[3])
dropExpiredNeighbours(KEYS[1], ARGV[1], ARGV[2])
return 1`

const ADD_NEWEST = `${ADD_FUNCTIONS}${DROP_FUNCTIONS}
addNewest(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[4])
dropExpiredNewest(KEYS[1], KEYS[2], ARGV[3])
return 1`

/**
 * The keys are the record, the indexes by time and by expiry, the indexes that it is added to, and those that it is removed from.
 * record.ts defines where the version and the expiry are. An index that cannot be changed is an error before the record is written.
 * The last read of the record makes Redis announce later changes of it, because the writer keeps what it has written.
 */
const PUT = `${NAMED_ARGUMENTS}${ADD_FUNCTIONS}${DROP_FUNCTIONS}
local head = redis.call('GETRANGE', KEYS[1], 0, 23)
local lives = #head == 24 and struct.unpack('<d', head, 17) > tonumber(given.now)
if (lives and string.sub(head, 1, 8) or '') ~= given.version then return 0 end
if #KEYS > 1 then
  local isNew = given.version == ''
  local lastAdded = 3 + tonumber(given.addedLabels)
  if given.newestMember ~= '' then
    addNewest(KEYS[2], KEYS[3], given.newestMember, given.expiresAt, given.kept)
    if isNew then dropExpiredNewest(KEYS[2], KEYS[3], given.now) end
  end
  if given.removedNewestMember ~= '' then
    redis.call('ZREM', KEYS[2], given.removedNewestMember)
    redis.call('ZREM', KEYS[3], given.removedNewestMember)
  end
  for at = 4, lastAdded do
    addMember(KEYS[at], given.member, given.kept)
    if isNew then dropExpiredNeighbours(KEYS[at], given.member, given.now) end
  end
  for at = lastAdded + 1, #KEYS do redis.call('ZREM', KEYS[at], given.removedMember) end
end
redis.call('SET', KEYS[1], given.record, 'PX', given.kept)
redis.call('EXISTS', KEYS[1])
return 1`

/**
 * Arguments: how many events to keep, how many to drop beyond those that are added, and alternating kinds and events.
 * `KEYS[1]` is the stream of all events. `KEYS[2]` is the set of kinds; each of them has a list of the ids of its events, the
 * oldest first, in the same slot. Drops events like `surplusOf` in trail.ts.
 */
const APPEND_TO_TRAIL = `
local keep, mostTrimmed = tonumber(ARGV[1]), tonumber(ARGV[2])
local function idsOf(kind) return KEYS[2] .. ':' .. kind end
for at = 3, #ARGV, 2 do
  local id = redis.call('XADD', KEYS[1], '*', 'event', ARGV[at + 1])
  redis.call('SADD', KEYS[2], ARGV[at])
  redis.call('RPUSH', idsOf(ARGV[at]), id)
end
local surplus = math.min(redis.call('XLEN', KEYS[1]) - keep, (#ARGV - 2) / 2 + mostTrimmed)
if surplus <= 0 then return 1 end
local kinds = {}
for _, kind in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  local ids = idsOf(kind)
  local ms, n = string.match(redis.call('LINDEX', ids, -1) or '0-0', '^(%d+)-(%d+)$')
  table.insert(kinds, { ids = ids, count = redis.call('LLEN', ids), ms = tonumber(ms), n = tonumber(n) })
end
local function losesBefore(one, other)
  if one.count ~= other.count then return one.count > other.count end
  if one.ms ~= other.ms then return one.ms < other.ms end
  return one.n < other.n
end
for _ = 1, surplus do
  local largest = kinds[1]
  for _, kind in ipairs(kinds) do if losesBefore(kind, largest) then largest = kind end end
  local id = redis.call('LPOP', largest.ids)
  if id then redis.call('XDEL', KEYS[1], id) end
  largest.count = largest.count - 1
end
for _, kind in ipairs(kinds) do
  if kind.count <= 0 then redis.call('SREM', KEYS[2], string.sub(kind.ids, #KEYS[2] + 2)) end
end
return 1`

export type Argument = string | Buffer

function keysFirst(parser: CommandParser, keys: readonly string[], ...rest: Argument[]): void {
  parser.pushKeysLength([...keys])
  parser.push(...rest)
}

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
  put: defineScript({ SCRIPT: PUT, parseCommand: keysFirst, transformReply: (reply: number) => reply === 1 }),
  addMember: defineScript({ SCRIPT: ADD_MEMBER, NUMBER_OF_KEYS: 1, parseCommand: keyFirst, transformReply: asItIs }),
  addNewest: defineScript({
    SCRIPT: ADD_NEWEST,
    NUMBER_OF_KEYS: 2,
    parseCommand: twoKeysFirst,
    transformReply: asItIs,
  }),
  appendToTrail: defineScript({
    SCRIPT: APPEND_TO_TRAIL,
    NUMBER_OF_KEYS: 2,
    parseCommand: twoKeysFirst,
    transformReply: asItIs,
  }),
}
