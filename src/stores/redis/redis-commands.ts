// The commands that the store sends to Redis, to one server or to a cluster. Each command is atomic.

import { type CommandParser, defineScript, RESP_TYPES } from 'redis'

export interface Commands {
  get(name: string): Promise<Buffer | null>
  getAndDelete(name: string): Promise<Buffer | null>
  /** Writes a record if the one that lives there has `version`, or if none lives there and `version` is empty. */
  put(write: PutArguments): Promise<boolean>
  /** Adds a member to an index, keeps the index as long as that lives, and drops expired members beside it. */
  addMember(index: string, member: string, now: number, keptMs: number): Promise<unknown>
  /** Adds a member to the index of the newest and to that of their expiry, and drops expired ones from both. */
  addNewest(indexes: IndexPair, member: string, expiresAt: number, now: number, keptMs: number): Promise<unknown>
  removeMembers(index: string, members: readonly string[]): Promise<unknown>
  /** The first members of an index from `start` on: `-` for all of them, `(member` for those after it. */
  members(index: string, start: string, count: number): Promise<string[]>
  /** The last ones up to `start`: `+` for all of them, `(member` for those before it. */
  membersBackwards(index: string, start: string, count: number): Promise<string[]>
  /** How many members have a score above this one. */
  countAbove(index: string, score: number): Promise<number>
  /** Adds events, kinds and records in turn, and lets go of what is beyond `keep`. */
  appendToTrail(names: TrailNames, keep: number, events: readonly Argument[]): Promise<unknown>
  /** The first events of a trail from `start` on: `-` for all of them, `(id` for those after it. Ids and events in turn. */
  trail(names: TrailNames, start: string, count: number): Promise<readonly Buffer[]>
  /** The last ones up to `start`: `+` for all of them, `(id` for those before it. */
  trailBackwards(names: TrailNames, start: string, count: number): Promise<readonly Buffer[]>
  ping(): Promise<unknown>
}

interface PutArguments {
  readonly name: string
  readonly version: Buffer
  readonly now: number
  readonly record: Buffer
  readonly keptMs: number
  /** Changes of the indexes in the same step. Not in a cluster, where they are in other slots. */
  readonly indexes?: IndexChange | undefined
}

/** What a record gets in its indexes, and what the record that it replaces had there. */
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
  /** Its member of the index of the newest; absent if it has none. */
  readonly newest?: string | undefined
}

/** The stream of events without a kind, and the set of kinds, of which the other streams have their names. */
export type TrailNames = readonly [stream: string, kinds: string]

export type IndexPair = readonly [bySince: string, byExpiry: string]

/** The part of node-redis that its client and its cluster have in common. */
interface CommandingClient {
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

/** The same, with replies as bytes. */
interface BinaryClient {
  get(name: string): Promise<Buffer | null>
  getDel(name: string): Promise<Buffer | null>
  readTrail(stream: string, kinds: string, ...rest: Argument[]): Promise<readonly Buffer[]>
}

interface Limit {
  offset: number
  count: number
}

/** The names of our keys all begin with `menshen:`; `prefix` takes its place, also where it decides on the slot. */
export function commandsOf(client: CommandingClient, prefix: string): Commands {
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
    trail: (names, ...rest) => commands.trail(both(names), ...rest),
    trailBackwards: (names, ...rest) => commands.trailBackwards(both(names), ...rest),
    ping: commands.ping,
  }
}

function plainCommands(client: CommandingClient, binary: BinaryClient): Commands {
  return {
    get: name => binary.get(name),
    getAndDelete: name => binary.getDel(name),
    put({ name, version, now, record, keptMs, indexes }) {
      const common = [version, String(now), record, String(keptMs)]
      if (!indexes) return client.put([name], ...common)
      const { newest, added, removed, expiresAt } = indexes
      return client.put(
        [name, ...newest, ...added.labels, ...removed.labels],
        ...common,
        ...[added.member, added.newest ?? '', String(expiresAt), String(added.labels.length)],
        ...[removed.member, removed.newest ?? ''],
      )
    },
    addMember: (index, member, now, keptMs) => client.addMember(index, member, String(now), String(keptMs)),
    addNewest: (indexes, member, ...times) => client.addNewest(...indexes, member, ...times.map(String)),
    removeMembers: (index, members) => client.zRem(index, [...members]),
    members: (index, start, count) => client.zRangeByLex(index, start, '+', { LIMIT: { offset: 0, count } }),
    membersBackwards: (index, start, count) =>
      client.zRange(index, start, '-', { BY: 'LEX', REV: true, LIMIT: { offset: 0, count } }),
    countAbove: (index, score) => client.zCount(index, `(${score}`, '+inf'),
    appendToTrail: (names, keep, events) => client.appendToTrail(...names, String(keep), ...events),
    trail: (names, start, count) => binary.readTrail(...names, 'XRANGE', start, '+', String(count)),
    trailBackwards: (names, start, count) => binary.readTrail(...names, 'XREVRANGE', start, '-', String(count)),
    ping: () => client.ping(),
  }
}

// Scripts, each of which Redis runs in one step. Each uses keys of one slot only, so that a cluster can run it; PUT with indexes is
// for a single server.

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
 * The expiry is where redis-indexes.ts has it. Keys are hashes, so the neighbours of a new one are a random sample: with
 * three of them looked at for each that is added, there is about one expired member to two living ones at most. Of the newest
 * more expired members are dropped than are added, so that they cannot pile up.
 */
const DROP_FUNCTIONS = `
local function dropExpiredBeside(index, member, now)
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
dropExpiredBeside(KEYS[1], ARGV[1], ARGV[2])
return 1`

const ADD_NEWEST = `${ADD_FUNCTIONS}${DROP_FUNCTIONS}
addNewest(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[4])
dropExpiredNewest(KEYS[1], KEYS[2], ARGV[3])
return 1`

/**
 * The version and the expiry are where redis-record.ts has them. An index that cannot be changed is an error before the record
 * is written. The last look at the record makes Redis announce later changes of it: the writer keeps what it has written.
 */
const PUT = `${ADD_FUNCTIONS}${DROP_FUNCTIONS}
local version, now, record, kept = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local head = redis.call('GETRANGE', KEYS[1], 0, 23)
local lives = #head == 24 and struct.unpack('<d', head, 17) > tonumber(now)
if (lives and string.sub(head, 1, 8) or '') ~= version then return 0 end
if #KEYS > 1 then
  local member, newest, expiresAt, lastAdded = ARGV[5], ARGV[6], ARGV[7], 3 + tonumber(ARGV[8])
  local oldMember, oldNewest = ARGV[9], ARGV[10]
  local isNew = version == ''
  if newest ~= '' then
    addNewest(KEYS[2], KEYS[3], newest, expiresAt, kept)
    if isNew then dropExpiredNewest(KEYS[2], KEYS[3], now) end
  end
  if oldNewest ~= '' then
    redis.call('ZREM', KEYS[2], oldNewest)
    redis.call('ZREM', KEYS[3], oldNewest)
  end
  for at = 4, lastAdded do
    addMember(KEYS[at], member, kept)
    if isNew then dropExpiredBeside(KEYS[at], member, now) end
  end
  for at = lastAdded + 1, #KEYS do redis.call('ZREM', KEYS[at], oldMember) end
end
redis.call('SET', KEYS[1], record, 'PX', kept)
redis.call('EXISTS', KEYS[1])
return 1`

/**
 * The trail is a stream for each kind of event. The one without a kind gives all of them their ids, so that they only go up,
 * whatever the clock does; what is added there for that is taken away at once. `KEYS[2]` is the set of kinds, and all keys
 * are of one slot.
 */
const LANES = `
local function lane(kind) return kind == '' and KEYS[1] or KEYS[2] .. ':' .. kind end
local kinds = redis.call('SMEMBERS', KEYS[2])
table.insert(kinds, '')
local function isBefore(one, other)
  return one.ms < other.ms or (one.ms == other.ms and one.n < other.n)
end
local function place(id)
  local ms, n = string.match(id, '^(%d+)-(%d+)$')
  return { ms = tonumber(ms), n = tonumber(n) }
end`

/** What is too much goes from whichever kind has most, and of the same number from the one whose last is the oldest. */
const APPEND_TO_TRAIL = `${LANES}
for at = 2, #ARGV, 2 do
  local kind = ARGV[at]
  if kind == '' then
    redis.call('XADD', KEYS[1], '*', 'event', ARGV[at + 1])
  else
    local id = redis.call('XADD', KEYS[1], '*', 'event', '')
    redis.call('XDEL', KEYS[1], id)
    if redis.call('SADD', KEYS[2], kind) == 1 then table.insert(kinds, kind) end
    redis.call('XADD', lane(kind), id, 'event', ARGV[at + 1])
  end
end
local lanes, total = {}, 0
for _, kind in ipairs(kinds) do
  local name = lane(kind)
  local count = redis.call('XLEN', name)
  local newest = redis.call('XREVRANGE', name, '+', '-', 'COUNT', 1)[1]
  if newest then table.insert(lanes, { name = name, count = count, was = count, last = place(newest[1]) }) end
  total = total + count
end
while total > tonumber(ARGV[1]) do
  table.sort(lanes, function(one, other)
    if one.count ~= other.count then return one.count > other.count end
    return isBefore(one.last, other.last)
  end)
  local largest, second = lanes[1], lanes[2]
  local step = math.min(total - tonumber(ARGV[1]), math.max(1, largest.count - (second and second.count or 0)))
  largest.count = largest.count - step
  total = total - step
end
for _, each in ipairs(lanes) do
  if each.count < each.was then redis.call('XTRIM', each.name, 'MAXLEN', each.count) end
end
return 1`

/** Ids and events in turn, of all kinds as one, in portions: most of what is asked for comes from one kind. */
const READ_TRAIL = `${LANES}
local verb, start, stop, left = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local portion = 100
local function fill(each)
  each.entries = redis.call(verb, each.name, each.from, stop, 'COUNT', math.min(left, portion))
  each.at = 1
  each.isLast = #each.entries < portion
end
local lanes = {}
for _, kind in ipairs(kinds) do
  local each = { name = lane(kind), from = start }
  fill(each)
  table.insert(lanes, each)
end
local found = {}
while left > 0 do
  local first, firstPlace
  for _, each in ipairs(lanes) do
    if each.at > #each.entries and not each.isLast then
      each.from = '(' .. each.entries[#each.entries][1]
      fill(each)
    end
    local entry = each.entries[each.at]
    if entry then
      local here = place(entry[1])
      local comesFirst = not first
      if first then
        if verb == 'XRANGE' then comesFirst = isBefore(here, firstPlace) else comesFirst = isBefore(firstPlace, here) end
      end
      if comesFirst then first, firstPlace = each, here end
    end
  end
  if not first then break end
  local entry = first.entries[first.at]
  table.insert(found, entry[1])
  table.insert(found, entry[2][2] or '')
  first.at = first.at + 1
  left = left - 1
end
return found`

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
  readTrail: defineScript({
    SCRIPT: READ_TRAIL,
    NUMBER_OF_KEYS: 2,
    parseCommand: twoKeysFirst,
    transformReply: (reply: Buffer[]) => reply,
  }),
}
