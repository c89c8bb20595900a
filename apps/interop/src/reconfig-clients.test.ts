import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DynamicEnsemble, superPassword } from './client/dynamic-ensemble.ts'
import { Client } from './harness/client.ts'
import { cliMt, missingRequirements, python, type Requirement } from './harness/requirements.ts'
import { apacheClassPath, run, scratch, serverUnderTest, spawnOwned } from './harness/servers.ts'
import { until } from './ensemble/ensemble.ts'

/** A change of the membership, as text for a client. */
interface Change {
  readonly joining?: string
  readonly leaving?: string
  readonly members?: string
  /** The members in a file, one a line. */
  readonly file?: string
}

/** Sends a reconfig by a client program and resolves to what it prints. */
type Send = (address: string, change: Change) => Promise<string>

const zabraMain = resolve(import.meta.dirname, '../../cli/dist/main.js')

/** Returns the arguments of `reconfig` in the shells of ZooKeeper. */
function shellArguments({ joining, leaving, members, file }: Change): string[] {
  if (joining !== undefined) return ['-add', joining]
  if (leaving !== undefined) return ['-remove', leaving]
  return file === undefined ? ['-members', members!] : ['-file', file]
}

const shellInput = (change: Change): string =>
  `addauth digest ${superPassword}\nreconfig ${shellArguments(change).join(' ')}\nquit\n`

/** Runs a change in the C shell, which exits at the end of its input without waiting for replies. */
async function sendByC(address: string, change: Change): Promise<string> {
  const child = spawnOwned(cliMt, [address])
  let output = ''
  const done = new Promise<void>((resolve) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString()
      // The reply to a sync comes after the reply to the reconfig.
      if (output.includes('/marker')) resolve()
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('close', () => resolve())
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
  child.stdin.write(
    `addauth digest ${superPassword}\nreconfig ${shellArguments(change).join(' ')}\nsync /marker\n`,
  )
  await done
  clearTimeout(timer)
  child.kill('SIGKILL')
  return output
}

const clients: readonly (readonly [name: string, peers: readonly Requirement[], send: Send])[] = [
  [
    'the shell of Zabra',
    [],
    async (address, change) => {
      const args = [zabraMain, 'shell', '--server', address]
      return (await run(process.execPath, args, { input: shellInput(change) })).output
    },
  ],
  [
    "Apache ZooKeeper's shell",
    ['apache'],
    async (address, change) => {
      const main = 'org.apache.zookeeper.ZooKeeperMain'
      const args = ['-cp', apacheClassPath, main, '-server', address]
      return (await run('java', args, { input: shellInput(change) })).output
    },
  ],
  [
    'the list API of Java',
    ['apache', 'javac'],
    async (address, { joining = '', leaving = '', members = '' }) => {
      const program = resolve(import.meta.dirname, '../java/Reconfig.java')
      const lists = [joining, leaving, members.replaceAll(',', '\n')]
      return (await run('java', ['-cp', apacheClassPath, program, address, superPassword, ...lists])).output
    },
  ],
  [
    'kazoo',
    ['kazoo'],
    async (address, { joining = '', leaving = '', members = '' }) => {
      const script = resolve(import.meta.dirname, '../python/reconfig.py')
      return (await run(python, [script, address, superPassword, joining, leaving, members])).output
    },
  ],
  ['the C shell', ['cliMt'], sendByC],
]

describe(`reconfig of an ensemble of ${serverUnderTest}`, () => {
  let ensemble: DynamicEnsemble
  let leader: number
  let victim: number
  let entry: number

  beforeAll(async () => {
    ensemble = await DynamicEnsemble.start(serverUnderTest)
    leader = await ensemble.leader()
    ;[entry, victim] = [1, 2, 3].filter((id) => id !== leader) as [number, number]
  })
  afterAll(() => ensemble[Symbol.asyncDispose]())

  const lines = (...ids: number[]): string[] => ids.map((id) => ensemble.line(id))

  /** Waits until the member that clients use shows a membership. */
  const waitForMembers = (what: string, ids: number[]): Promise<void> =>
    until(what, async () => {
      const client = await Client.connect(Number(ensemble.address(entry).split(':')[1]), { timeoutMs: 6000 })
      const text = String((await client.get('/zookeeper/config')).data)
      await client.close()
      const shown = [...text.matchAll(/^server\.(\d+)=/gm)]
        .map(([, id]) => Number(id))
        .toSorted((a, b) => a - b)
      return shown.join() === ids.toSorted((a, b) => a - b).join()
    })

  describe.each(clients)('by %s', (name, peers, send) => {
    const skipped = missingRequirements(...peers)
    it.skipIf(skipped !== undefined)(
      `through a follower removes, adds and replaces members${skipped === undefined ? '' : ` (skipped: ${skipped})`}`,
      async () => {
        const address = ensemble.address(entry)
        const remove = async (): Promise<void> => {
          const output = await send(address, { leaving: String(victim) })
          await waitForMembers(`${name} to remove a member; it printed ${output}`, [leader, entry])
        }
        const all = [leader, entry, victim]
        await remove()
        let output = await send(address, { joining: ensemble.line(victim) })
        await waitForMembers(`${name} to add a member; it printed ${output}`, all)
        output = await send(address, { members: lines(leader, entry).join(',') })
        await waitForMembers(`${name} to replace the members; it printed ${output}`, [leader, entry])
        if (name.includes('shell')) {
          const file = join(scratch('members'), 'members.cfg')
          writeFileSync(file, `${lines(...all).join('\n')}\n`)
          output = await send(address, { file })
        } else output = await send(address, { members: lines(...all).join('\n') })
        await waitForMembers(`${name} to replace the members by lines; it printed ${output}`, all)
      },
    )
  })

  it.each([
    ['-members server.1=nowhere', 'host:quorumPort'],
    ['-remove 1,2,3', 'at least 2 participants, got one with 0'],
    ['-add server.9=127.0.0.1:1:2', 'Expected three ports for server.9'],
    [
      '-members server.7=127.0.0.1:1:2;3,server.8=127.0.0.1:4:5;6',
      'No quorum of new config: expected a majority of the new members to run',
    ],
  ])('the shell of Zabra prints why `reconfig %s` is refused', async (change, reason) => {
    const args = [zabraMain, 'shell', '--server', ensemble.address(entry)]
    const input = `addauth digest ${superPassword}\nreconfig ${change}\nquit\n`
    expect((await run(process.execPath, args, { input })).stderr).toContain(reason)
  })
})
