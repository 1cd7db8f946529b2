// What the rooms need of a log: an event with its facts. A user's name at most; never a ticket, a code, a token or anything else about a person.
export interface Log {
  info(facts: object, event: string): void
  warn(facts: object, event: string): void
  error(facts: object, event: string): void
}
