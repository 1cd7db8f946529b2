// What the rooms need of a log: an event with its facts. Never a ticket, a code, a token or a person's data.
export interface Log {
  info(facts: object, event: string): void
  warn(facts: object, event: string): void
  error(facts: object, event: string): void
}
