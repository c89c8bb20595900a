import { getServers, setServers } from 'node:dns/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NameServer } from '../../../packages/client/src/testdata/name-server.ts'
import { Networks } from './session/transport.ts'
import { Stage } from './testdata/stage.ts'

const before = getServers()
let names: NameServer
let stage: Stage
beforeAll(async () => {
  stage = await Stage.start()
  names = await NameServer.start()
  setServers([names.address])
  names.set('_zk._tcp.zabra.test', [{ host: 'localhost', port: stage.server.addresses.client.port }])
})
afterAll(async () => {
  setServers(before)
  await names.stop()
  await stage.stop()
})

describe('a service named by --server', () => {
  it('is looked up, with a root behind its name', async () => {
    await stage.plant({ '/app': null, '/app/a': 'x' })
    const server = ['--server', 'dns-srv://_zk._tcp.zabra.test/app']
    expect(await stage.run(['ls', '/', ...server])).toMatchObject({ code: 0, out: 'a\n' })
  })

  it('that nobody knows is told as such, with what to do', async () => {
    const at = ['--server', 'dns-srv://_none._tcp.zabra.test', '--timeout', '300']
    expect(await stage.run(['ls', '/', ...at])).toMatchObject({
      code: 8,
      err: expect.stringMatching(
        /_none\._tcp\.zabra\.test failed: querySrv ENOTFOUND.*Check the name of the service/,
      ),
    })
  })

  it('is reached over TLS with --tls', () => {
    expect(new Networks({}, true).named('dns-srv://a/b')).toBe('dns-srv+tls://a/b')
    expect(new Networks({}, false).named('dns-srv://a/b')).toBe('dns-srv://a/b')
  })
})
