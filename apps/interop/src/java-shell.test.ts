import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { apacheShell, run, type Server } from './harness/servers.ts'
import { mask, shellSession, splitEvents } from './harness/shell-session.ts'
import { onBoth } from './harness/transcript.ts'

async function shell(server: Server): Promise<string> {
  const { code, stdout, stderr } = await run('java', apacheShell(server), {
    input: `${shellSession.replaceAll('ADDRESS', server.address)}\n`,
  })
  return JSON.stringify({ code, out: splitEvents(mask(stdout, server)), err: mask(stderr, server) })
}

describeWith(['apache'], "Apache ZooKeeper's shell", () => {
  it('prints the same replies from Zabra and from Apache ZooKeeper for every command', async () => {
    const { apache, zabra } = await onBoth(shell, { extendedTypesEnabled: 'true' })
    type Printed = { code: number; out: { answers: string[]; events: string[] }; err: string[] }
    const [expected, actual] = [JSON.parse(apache.join('')) as Printed, JSON.parse(zabra.join('')) as Printed]
    expect(actual.out.answers).toEqual(expected.out.answers)
    expect(actual.err).toEqual(expected.err)
    expect(actual.out.events).toEqual(expected.out.events)
    expect(actual.code).toBe(expected.code)
    expect(actual.out.answers.length).toBeGreaterThan(140)
  })

  it('exits with the same codes for single commands', async () => {
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
        const args = apacheShell(server, ...call)
        const { code, stderr } = await run('java', args)
        codes.push(`${call.join(' ')}: ${code} ${mask(stderr, server).join(' ')}`)
      }
      return codes.join('\n')
    })
    expect(zabra).toEqual(apache)
  })
})
