import { getServers, setServers } from 'node:dns/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DnsServer } from '../../../packages/client/src/testing/dns-server.ts'
import { ClientTransport } from './session/transport.ts'
import { CliFixture } from './testing/cli-fixture.ts'

const before = getServers()
let names: DnsServer
let stage: CliFixture
beforeAll(async () => {
  stage = await CliFixture.start()
  names = await DnsServer.start()
  setServers([names.address])
  names.set('_zk._tcp.zabra.test', [{ host: 'localhost', port: stage.server.addresses.client.port }])
})
afterAll(async () => {
  setServers(before)
  await names.stop()
  await stage.stop()
})

describe('a dns-srv name in --server', () => {
  it('is looked up, and its chroot is used', async () => {
    await stage.createNodes({ '/app': null, '/app/a': 'x' })
    const server = ['--server', 'dns-srv://_zk._tcp.zabra.test/app']
    expect(await stage.run(['ls', '/', ...server])).toMatchObject({ code: 0, out: 'a\n' })
  })

  it('that cannot be resolved is reported with advice', async () => {
    const at = ['--server', 'dns-srv://_none._tcp.zabra.test', '--timeout', '2000']
    expect(await stage.run(['ls', '/', ...at])).toMatchObject({
      code: 8,
      err: expect.stringMatching(
        /_none\._tcp\.zabra\.test failed: querySrv ENOTFOUND.*Check the name of the service/,
      ),
    })
  })

  it('gives status and bench all of its servers', async () => {
    const service = 'dns-srv://_zk._tcp.zabra.test'
    const port = stage.server.addresses.client.port
    const standing = { code: 0, out: expect.stringContaining(`localhost:${port} `) }
    expect(await stage.run(['status', service])).toMatchObject(standing)
    expect(await stage.run(['status', '--server', service])).toMatchObject(standing)
    const load = ['-m', 'get', '-c', '2', '-d', '2', '-s', '1', '--json']
    const { code, err, out } = await stage.run(['bench', service, ...load])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('"operations"')
  })

  it.each([['status'], ['bench']])('that cannot be resolved ends %s with advice', async (command) => {
    const at = ['dns-srv://_none._tcp.zabra.test', '--timeout', '2000']
    expect(await stage.run([command, ...at])).toMatchObject({
      code: 8,
      err: expect.stringMatching(/_none\._tcp\.zabra\.test failed: querySrv ENOTFOUND.*Check the name/),
    })
  })

  it.each([['status'], ['bench']])('that is malformed is a usage error of %s', async (command) => {
    expect(await stage.run([command, 'dns-srv://a:2181'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('Expected a service as dns-srv://name/chroot'),
    })
  })

  it('implies TLS for its servers with --tls', () => {
    expect(new ClientTransport({}, true).withSchemes('dns-srv://a/b')).toBe('dns-srv+tls://a/b')
    expect(new ClientTransport({}, false).withSchemes('dns-srv://a/b')).toBe('dns-srv://a/b')
  })
})
