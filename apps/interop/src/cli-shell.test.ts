import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { apacheShell, serverUnderTest, run, Server } from './harness/servers.ts'
import { mask, shellSession, splitEvents } from './harness/shell-session.ts'

const zabra = resolve(import.meta.dirname, '../../cli/dist/main.js')

/** The output of a shell: replies, errors and watch events. */
interface Printed {
  readonly answers: readonly string[]
  readonly errors: readonly string[]
  readonly events: readonly string[]
}

/** Runs the shell session against a fresh server. */
async function printed(program: string, args: (server: Server) => readonly string[]): Promise<Printed> {
  await using server = await Server.start({ kind: serverUnderTest, config: { extendedTypesEnabled: 'true' } })
  const input = `${shellSession.replaceAll('ADDRESS', server.address)}\n`
  const { stdout, stderr } = await run(program, args(server), { input })
  const { answers, events } = splitEvents(mask(stdout, server))
  return {
    answers: answers.filter((line) => !isBanner(line)),
    errors: mask(stderr, server).filter((line) => !isUsageList(line)),
    // Apache's shell also prints the state changes of its connections.
    events: events.filter((line) => !line.includes('type:None')),
  }
}

const isBanner = (line: string): boolean =>
  /^(Connecting to |Welcome to ZooKeeper|JLine support|ZooKeeper CLI version: )/.test(line)

/** An unknown command prints the list of commands first, and zabra has more commands. */
const isUsageList = (line: string): boolean => /^(\t|ZooKeeper -server|zabra shell)/.test(line)

describeWith(['apache'], 'zabra shell', () => {
  it("prints the same as Apache ZooKeeper's shell for every command", async () => {
    const [expected, actual] = await Promise.all([
      printed('java', apacheShell),
      printed(process.execPath, ({ address }) => [zabra, 'shell', '--server', address]),
    ])
    expect(actual.answers).toEqual(expected.answers)
    expect(actual.errors).toEqual(expected.errors)
    expect(actual.events).toEqual(expected.events)
    expect(actual.answers.length).toBeGreaterThan(130)
  })

  it("has every command and option of Apache ZooKeeper's shell in its help", async () => {
    await using server = await Server.start({ kind: serverUnderTest })
    const [expected, actual] = await Promise.all([
      run('java', apacheShell(server), { input: 'help\nquit\n' }),
      run(process.execPath, [zabra, 'shell', '--server', server.address], { input: 'help\nquit\n' }),
    ])
    const usages = (text: string): Map<string, string> =>
      new Map(
        text
          .split('\n')
          .filter((line) => line.startsWith('\t'))
          .map((line) => [/^\t(\S+)/.exec(line)![1]!, line.trim()]),
      )
    const options = (usage: string): string[] => usage.match(/(?<![\w-])-\w+/g) ?? []
    const known = usages(actual.output)
    const asked = usages(expected.output)
    expect([...asked.keys()].filter((name) => !known.has(name))).toEqual([])
    for (const [name, usage] of asked)
      expect(options(known.get(name)!), name).toEqual(expect.arrayContaining(options(usage)))
    expect(asked.size).toBeGreaterThan(25)
    // What 3.9 and 3.10 added to 3.8.
    for (const usage of ['get [-s] [-w] [-b] [-x] path', 'removewatches path [-c|-d|-p|-r|-a] [-l]'])
      expect([...known.values()]).toContain(usage)
  })

  it('works with an Apache server and reads its data directory', async () => {
    await using server = await Server.start({ kind: 'apache-3.8' })
    const call = (args: readonly string[], input = '') =>
      run(process.execPath, [zabra, ...args, '--server', server.address], { input })
    expect(await call(['create', '/a/b', 'x', '--parents'])).toMatchObject({ code: 0, stdout: '/a/b\n' })
    expect(await call(['get', '/a/b'])).toMatchObject({ code: 0, stdout: 'x' })
    const { stdout: exported } = await call(['export', '/a'])
    expect(await call(['import', '-', '/copy'], exported)).toMatchObject({ code: 0 })
    expect((await call(['find', '--data', '^x$'])).stdout).toBe('/a/b\n/copy/b\n')
    expect((await call(['status'])).stdout).toMatch(/standalone .* ok\n$/)
    await server.stop()
    const checked = await run(process.execPath, [zabra, 'log', '--check', server.dataDir])
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('sound') })
    const shown = await run(process.execPath, [zabra, 'log', '--path', '/copy', server.dataDir])
    expect(shown.stdout).toContain('create /copy/b 1 bytes')
    const snapshot = await run(process.execPath, [zabra, 'snapshot', '--check', server.dataDir])
    expect(snapshot).toMatchObject({ code: 0, stdout: expect.stringContaining('sound') })
  })
})
