import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliFixture } from '../testing/cli-fixture.ts'
import { translateZkCliArgs } from './zk-cli-args.ts'

const folder = mkdtempSync(join(tmpdir(), 'zabra-start-'))
let stage: CliFixture
beforeAll(async () => {
  stage = await CliFixture.start()
})
afterAll(async () => {
  await stage.stop()
  rmSync(folder, { recursive: true })
})

const file = (text: string): string => {
  const path = join(folder, 'client.cfg')
  writeFileSync(path, text)
  return path
}

describe('the options of zkCli.sh', () => {
  it.each([
    [
      'shell -server h:1 -timeout 5000 -r -waitforconnection',
      'shell --server h:1 --timeout 5000 --read-only',
    ],
    ['shell -server h:1 get -s /a', 'shell --server h:1 -- get -s /a'],
    ['--server shell --json shell ls -R / --tls', '--server shell --json shell --tls -- ls -R /'],
    ['shell -e -c x', 'shell -e -c x'],
    ['ls -server', 'ls -server'],
    ['get shell', 'get shell'],
    ['', ''],
  ])('%s', (line, expected) => {
    expect(translateZkCliArgs(line.split(' ')).args.join(' ')).toBe(expected)
  })

  it('apply to the session, and the words after them are one command', async () => {
    const run = (...words: string[]) =>
      stage.run(['shell', '-server', stage.address, '-timeout', '4000', '-r', ...words], {
        environment: { ZABRA_SERVER: '127.0.0.1:1' },
      })
    expect(await run('create', '/two words', 'a "b" c')).toMatchObject({
      code: 0,
      err: 'Created /two words\n',
    })
    expect(await run('get', '/two words')).toMatchObject({ code: 0, out: 'a "b" c\n' })
    expect(await run('get', '/none')).toMatchObject({ code: 3 })
    expect(await run('-c', 'ls /', 'ls', '/')).toMatchObject({ code: 2 })
    expect(await run('-nosuch')).toMatchObject({ code: 2 })
  })

  it('read a client configuration', () => {
    const path = file(
      '# a client\nzookeeper.client.secure=true\nzookeeper.clientCnxnSocket=org.x\nzookeeper.ssl.trustStore.location=/t.p12\nzookeeper.ssl.trustStore.password=p\n',
    )
    expect(translateZkCliArgs(['shell', '-client-configuration', path, 'ls', '/'])).toEqual({
      args: ['shell', '--', 'ls', '/'],
      environment: { ZABRA_TLS: 'true', ZABRA_CA: '/t.p12', ZABRA_CA_PASSWORD: 'p' },
    })
  })

  it('refuse a client configuration with unsupported keys', async () => {
    const strange = file('zookeeper.sasl.client=true\n')
    expect(await stage.run(['shell', '-client-configuration', strange])).toMatchObject({
      code: 2,
      err: expect.stringContaining(`${strange}:1: Expected one of zookeeper.client.secure`),
    })
    expect(await stage.run(['shell', '-client-configuration', '/no/such'])).toMatchObject({ code: 2 })
    expect(await stage.run(['shell', '-client-configuration'])).toMatchObject({ code: 2 })
  })
})
