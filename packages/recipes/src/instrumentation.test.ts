import { NoAuthError, type Client } from '@zabra/client/core'
import { UnhandledRejections } from '@zabra/testkit'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { LeaderElection, Mutex, Semaphore } from './index.ts'
import { other, run, setupEachTest, world } from './testing/setup.ts'
import { rejectionOf } from './testing/world.ts'

// Errors of hooks are ignored: a rejection that no code handles would end the process of the user.

setupEachTest('a', 'b')

const READ_AND_CREATE = [{ scheme: 'world', id: 'anyone', perms: 5 }]
const unhandled = new UnhandledRejections()

let phases: string[]
let client: Client

beforeEach(async () => {
  phases = []
  unhandled.begin()
  client = await world.client({
    instrumentation: {
      recipe: (async ({ phase }: { readonly phase: string }) => {
        phases.push(phase)
        throw new Error('the hook of the test')
      }) as never,
    },
  })
})
afterEach(unhandled.end)

it.each<[string, string, () => Promise<unknown>]>([
  [
    'of a wait that cannot be withdrawn',
    'leaveFailed',
    async () => {
      await run(new Mutex(other, '/l').acquire())
      const stop = new AbortController()
      const waiting = rejectionOf(new Mutex(client, '/l').acquire({ signal: stop.signal }))
      await world.settle()
      await run(other.setACL('/l', READ_AND_CREATE))
      stop.abort()
      await run(waiting)
    },
  ],
  [
    'of a leadership that cannot be given up',
    'leaveFailed',
    async () => {
      const election = new LeaderElection(client, '/l')
      const terms = election.leadership()
      await run(terms.next())
      await run(other.setACL('/l', READ_AND_CREATE))
      await run(election.close())
      expect(await run(rejectionOf(terms.next()))).toBeInstanceOf(NoAuthError)
    },
  ],
  [
    'of permits that cannot be released after their caller has gone',
    'leaveFailed',
    async () => {
      await run((await run(new Semaphore(other, '/l', { permits: 1 }).acquire())).release())
      const stop = new AbortController()
      world.faults.toServer = (chunk) => {
        if (new TextDecoder().decode(chunk).includes('/l/leases/')) stop.abort()
        return chunk
      }
      const taking = rejectionOf(new Semaphore(client, '/l', { permits: 1 }).acquire({ signal: stop.signal }))
      // The session of the client keeps its znodes; only their deletion is refused.
      await run(other.setACL('/l/leases', READ_AND_CREATE))
      await run(taking)
    },
  ],
  [
    'of a lease that cannot be renewed',
    'renewalFailed',
    async () => {
      await run(new Mutex(client, '/l', { errorPolicy: { lease: {} } }).acquire())
      world.answerWith(-102, {
        times: 3,
        matches: ({ frame }) => new DataView(frame.buffer, frame.byteOffset).getInt32(8) === 14,
      })
      await world.advance(5000)
    },
  ],
])('an error of the hook %s is ignored', async (_name, phase, use) => {
  await use()
  await world.advance(100)
  expect(phases).toContain(phase)
  expect(await unhandled.reasons()).toEqual([])
})
