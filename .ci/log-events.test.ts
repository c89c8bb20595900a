import { readFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { WORDED_EVENTS } from '../apps/server/src/apache-words.ts'
import { logEvents } from '../packages/server/src/logging/log-events.ts'
import { logCallsIn, type LogCall } from './log-calls.ts'
import { sourceFiles } from './sources.ts'

const root = resolve(import.meta.dirname, '..')
/** Files that pass lines on, and name no event. */
const PASSING =
  /\/(event-logger|repeated-lines|limited-log|refusal-log)\.ts$|\.test\.ts$|\/(testing|testdata)\//
/** The event of a client that is refused or closed, whatever the reason. */
const REFUSAL = 'client.closed'
const IMPORTANCE = ['error', 'warn', 'info', 'debug']

const calls = logCallsIn(
  sourceFiles(root)
    .map((path) => ({ path, file: relative(root, path) }))
    .filter(({ file }) => /^(packages\/server|apps\/server)\/src\//.test(file) && !PASSING.test(file))
    .map(({ path, file }) => ({ file, text: readFileSync(path, 'utf8') })),
)
const events = Object.entries(logEvents)
const idOf = new Map(events.map(([id, { message }]) => [message as string, id]))

/** The ids of a call, and what is wrong with it. */
function check({ at, level, messages, ids, isRefusal }: LogCall): { ids: string[]; faults: string[] } {
  const ofMessages = messages.map((message) => idOf.get(message) ?? (isRefusal ? REFUSAL : message))
  const named = ids.length > 0 ? [...ids] : isRefusal && messages.length === 0 ? [REFUSAL] : ofMessages
  const faults = named.flatMap((id) => {
    const event = Object.hasOwn(logEvents, id) ? logEvents[id as keyof typeof logEvents] : undefined
    if (event === undefined)
      return [`${at}: no event in log-events.ts has the id or message ${JSON.stringify(id)}`]
    if (IMPORTANCE.indexOf(level) < IMPORTANCE.indexOf(event.level))
      return [`${at}: ${id} is logged at ${level}, but is an event of ${event.level} in log-events.ts`]
    return []
  })
  if (named.length === 0)
    faults.push(`${at}: the message is not constant: name the event by id in the context`)
  return { ids: named, faults }
}

test('each line that the server logs is an event of packages/server/src/logging/log-events.ts', () => {
  expect(calls.flatMap((call) => check(call).faults)).toEqual([])
})

test('each event is logged, at its level', () => {
  const logged = new Set(calls.flatMap((call) => check(call).ids.map((id) => `${id} ${call.level}`)))
  expect(events.map(([id, { level }]) => `${id} ${level}`).filter((event) => !logged.has(event))).toEqual([])
})

test('the events with words of Apache ZooKeeper are events of log-events.ts', () => {
  expect(WORDED_EVENTS.filter((id) => !Object.hasOwn(logEvents, id))).toEqual([])
})

test('no two events have the same message', () => {
  const messages = events
    .map(([, { message }]) => message as string)
    .filter((message) => !/^\{\w+\}$/.test(message))
  expect(messages.filter((message, at) => messages.indexOf(message) !== at)).toEqual([])
})
