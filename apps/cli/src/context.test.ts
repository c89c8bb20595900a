import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { CommandRun, setupStage, stage, type RunResult } from './testing/cli-fixture.ts'

setupStage()

let home = ''
let count = 0
beforeEach(() => mkdirSync((home = join(stage.folder, `home-${count++}`))))
const file = (): string => join(home, 'zabra', 'contexts.json')
/** Runs a command line without a server in its environment. */
const run = (argv: readonly string[], environment: Record<string, string> = {}): Promise<RunResult> =>
  new CommandRun(argv, undefined, {
    input: '',
    environment: { XDG_CONFIG_HOME: home, PATH: process.env['PATH'] ?? '', ...environment },
  }).ended

describe('context', () => {
  it('add, use, list and remove keep contexts in a file that the user alone can read', async () => {
    expect((await run(['context', 'list'])).err).toContain('no contexts in')
    expect((await run(['context', 'add', 'here', '--server', stage.address])).code).toBe(0)
    expect((await run(['context', 'add', 'there', '--server', '127.0.0.1:1', '--ca', 'ca.pem'])).code).toBe(0)
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    expect((await run(['ls', '/'])).code).toBe(0)
    expect((await run(['ls', '/', '--context', 'there'])).code).toBe(8)
    expect((await run(['ls', '/'], { ZABRA_CONTEXT: 'here' })).code).toBe(0)
    expect((await run(['context', 'use', 'there'])).code).toBe(0)
    expect((await run(['context', 'list'])).out).toMatch(
      /^ +name +server\n +here +\S+\n\* +there +127\.0\.0\.1:1\n$/,
    )
    const listed = (await run(['context', 'list', '--json'])).out.trim().split('\n')
    expect(JSON.parse(listed[1]!)).toMatchObject({
      name: 'there',
      current: true,
      ca: join(process.cwd(), 'ca.pem'),
    })
    expect((await run(['context', 'remove', 'there'])).code).toBe(0)
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({
      contexts: { here: { server: stage.address } },
    })
  })

  it('takes identities from a command or a file, and keeps no secret', async () => {
    const secret = join(home, 'identities')
    writeFileSync(secret, 'digest:ada:secret\ndigest:bob:pw\n', { mode: 0o600 })
    await run(['context', 'add', 'a', '--server', stage.address, '--auth-command', `cat '${secret}'`])
    await run(['context', 'add', 'b', '--server', stage.address, '--auth-file', secret])
    expect(readFileSync(file(), 'utf8')).not.toContain('secret')
    for (const name of ['a', 'b'])
      expect((await run(['whoami', '--context', name])).out).toMatch(/ada[^]*bob/)
    // A server that is named otherwise does not get the credentials of the context in use.
    expect((await run(['whoami', '--server', stage.address])).out).not.toContain('ada')
    const named = await run(['whoami', '--server', stage.address], { ZABRA_CONTEXT: 'a' })
    expect([named.code, named.out.includes('ada')]).toEqual([0, false])
    expect(await run(['context', 'add', 'c', '--server', 'x', '--auth', 'digest:ada:secret'])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/a context keeps no secret/) as unknown,
    })
    await run(['context', 'add', 'd', '--server', stage.address, '--auth-command', 'exit 4'])
    expect(await run(['ls', '/', '--context', 'd'])).toMatchObject({
      code: 2,
      err: 'zabra: The command of the context for credentials ended with 4: exit 4\n',
    })
  })

  it.each([
    [['context', 'use', 'x'], 'There is no context "x". Add one with zabra context add.'],
    [['ls', '/', '--context', 'toString'], 'There is no context "toString"'],
    [['context', 'add', 'x'], 'Expected the servers of the context with --server'],
  ])('%j is refused', async (argv, message) => {
    expect(await run(argv)).toMatchObject({ code: 2, err: expect.stringContaining(message) as unknown })
  })

  it('refuses a file that is malformed, and one that other users may change', async () => {
    mkdirSync(join(home, 'zabra'))
    writeFileSync(file(), '{"contexts": []}', { mode: 0o600 })
    expect(await run(['ls', '/'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('Expected {"contexts"') as unknown,
    })
    writeFileSync(file(), '{"contexts": {}}')
    chmodSync(file(), 0o666)
    expect(await run(['ls', '/'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('chmod 600') as unknown,
    })
  })
})
