import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { nodePlatform } from '@zabra/runtime/node'
import { describe, expect, it } from 'vitest'
import { Interrupted } from './exit-codes.ts'
import { CapturedOutput, CliFixture, setupStage, stage } from './testing/cli-fixture.ts'
import { promptHidden } from './text/prompt-hidden.ts'

setupStage({ saslUsers: { bob: 'sécret "1"' }, saslAclScheme: true })

const as = (name: string, ...rest: string[]): string[] => ['--sasl-user', name, ...rest]
const environment = { ZABRA_SASL_PASSWORD: 'sécret "1"' }

describe('a SASL login', () => {
  it('reads the password from the environment', async () => {
    const { code, out } = await stage.run(['whoami', ...as('bob')], { environment })
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('sasl: bob') })
    const both = { ...environment, ZABRA_SASL_USER: 'bob' }
    expect((await stage.run(['whoami'], { environment: both })).out).toContain('sasl: bob')
  })

  it('reads the password from the first line of a file or of standard input', async () => {
    const file = join(stage.folder, 'password')
    writeFileSync(file, 'sécret "1"\r\nwhat follows means nothing\n')
    const login = as('bob', '--sasl-password-file')
    expect((await stage.run(['whoami', ...login, file])).out).toContain('sasl: bob')
    expect((await stage.run(['whoami', ...login, '-'], { input: 'sécret "1"\n' })).out).toContain('sasl: bob')
  })

  it('logs in once for every session of a shell', async () => {
    const input = `whoami\nconnect ${stage.address}\nwhoami\n`
    const { out } = await stage.run(['shell', ...as('bob')], { environment, input })
    expect(out.match(/sasl: bob/g)).toHaveLength(2)
  })

  it('exits with 7 for a wrong password and does not print it', async () => {
    const wrong = { ZABRA_SASL_PASSWORD: 'not-this-one' }
    const ran = await stage.run(['whoami', ...as('bob')], { environment: wrong })
    expect(ran).toMatchObject({
      code: 7,
      err: expect.stringMatching(/^zabra: SASL DIGEST-MD5: .*Check --sasl-user and its password\.\n$/),
    })
    expect(ran.err).not.toContain('not-this-one')
  })

  it('names a missing user or password', async () => {
    const none = await stage.run(['ls', ...as('bob')])
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('Set ZABRA_SASL_PASSWORD') })
    const noUser = await stage.run(['ls', '--sasl-password-file', '/some/file'])
    expect(noUser).toMatchObject({ code: 2, err: expect.stringContaining('Name one with --sasl-user') })
    const empty = await stage.run(['ls', ...as('bob', '--sasl-password-file', '-')], { input: '\n' })
    expect(empty).toMatchObject({ code: 2, err: expect.stringContaining('got an empty one') })
    const absent = await stage.run(['ls', ...as('bob', '--sasl-password-file', '/no/such')])
    expect(absent).toMatchObject({ code: 2, err: expect.stringContaining('/no/such') })
  })

  it('reports a server without SASL logins', async () => {
    const plain = await CliFixture.start()
    try {
      const { code, err } = await plain.run(['ls', ...as('bob')], { environment })
      expect({ code, err }).toEqual({ code: 7, err: expect.stringContaining('Leave out --sasl-user') })
    } finally {
      await plain.stop()
    }
  })
})

describe('a password prompt', () => {
  function ask(stop = new AbortController()) {
    const stdin = new PassThrough()
    const stderr = new CapturedOutput(true)
    const io = {
      stdin,
      stdout: new CapturedOutput(true),
      stderr,
      environment: {},
      version: '',
      signal: stop.signal,
      platform: nodePlatform(),
    }
    return { stdin, stderr, stop, answer: promptHidden(io, 'Password: ') }
  }

  it('has no echo and accepts corrections', async () => {
    const { stdin, stderr, answer } = ask()
    stdin.write('wrong\u0015sä')
    stdin.write('x\u007fcret\r')
    expect(await answer).toBe('säcret')
    expect(stderr.text).toBe('Password: \n')
  })

  it('leaves text typed after Enter for the next reader', async () => {
    const { stdin, answer } = ask()
    stdin.write('secret\rls /\r')
    expect(await answer).toBe('secret')
    expect(String(stdin.read())).toBe('ls /\r')
  })

  it('is cancelled by Ctrl-C, Ctrl-D or a signal', async () => {
    for (const key of ['\u0003', '\u0004']) {
      const { stdin, answer } = ask()
      stdin.write(key)
      await expect(answer).rejects.toBeInstanceOf(Interrupted)
    }
    const { stop, answer } = ask()
    stop.abort(new Interrupted('SIGTERM'))
    await expect(answer).rejects.toThrow('SIGTERM')
  })
})
