import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { apacheClassPath, run, type Server } from './harness/servers.ts'
import { mask, shellSession, splitEvents } from './harness/shell-session.ts'
import { onBoth } from './harness/transcript.ts'

async function shell(server: Server): Promise<string> {
  const main = 'org.apache.zookeeper.ZooKeeperMain'
  const { code, stdout, stderr } = await run(
    'java',
    ['-cp', apacheClassPath, main, '-server', server.address],
    {
      input: `${shellSession.replaceAll('ADDRESS', server.address)}\n`,
    },
  )
  return JSON.stringify({ code, out: splitEvents(mask(stdout, server)), err: mask(stderr, server) })
}

describeWith(['apache'], "Apache ZooKeeper's shell", () => {
  it('prints the same for every command', async () => {
    const { apache, zabra } = await onBoth(shell, { extendedTypesEnabled: 'true' })
    type Printed = { code: number; out: { answers: string[]; events: string[] }; err: string[] }
    const [theirs, mine] = [JSON.parse(apache.join('')) as Printed, JSON.parse(zabra.join('')) as Printed]
    expect(mine.out.answers).toEqual(theirs.out.answers)
    expect(mine.err).toEqual(theirs.err)
    expect(mine.out.events).toEqual(theirs.out.events)
    expect(mine.code).toBe(theirs.code)
    expect(mine.out.answers.length).toBeGreaterThan(140)
  })

  it('ends one-command calls with the same exit codes', async () => {
    const calls = [
      ['ls', '/'],
      ['get', '/none'],
      ['create', '/x', 'y'],
      ['nonsense'],
      ['version'],
      ['delete', '/zookeeper'],
    ]
    const { apache, zabra } = await onBoth(async (server) => {
      const codes: string[] = []
      for (const call of calls) {
        const args = [
          '-cp',
          apacheClassPath,
          'org.apache.zookeeper.ZooKeeperMain',
          '-server',
          server.address,
          ...call,
        ]
        const { code, stderr } = await run('java', args)
        codes.push(`${call.join(' ')}: ${code} ${mask(stderr, server).join(' ')}`)
      }
      return codes.join('\n')
    })
    expect(zabra).toEqual(apache)
  })
})
