import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Stage } from './testdata/stage.ts'

const certificate = (name: string): string =>
  join(import.meta.dirname, '../../../packages/runtime/src/testdata/tls', name)

let stage: Stage
let secure: string
beforeAll(async () => {
  stage = await Stage.start({
    secureClientPort: 0,
    sslKeyStoreLocation: certificate('server.pem'),
    sslTrustStoreLocation: certificate('authority.pem'),
    sslClientAuth: 'need',
  })
  const { port } = stage.server.listeners.find(({ key }) => key === 'secureClientPort')!.address
  secure = `localhost:${port}`
})
afterAll(() => stage.stop())

const trusting = ['--ca', certificate('authority.pem'), '--cert', certificate('alice.pem')]

describe('over TLS', () => {
  it('commands reach a server, and show it a certificate', async () => {
    const { code, out } = await stage.run(['whoami', '--tls', '--server', secure, ...trusting])
    expect(code).toBe(0)
    expect(out).toContain('x509: ')
    const environment = {
      ZABRA_SERVER: secure,
      ZABRA_TLS: '1',
      ZABRA_CA: certificate('authority.pem'),
      ZABRA_CERT: certificate('alice.pem'),
    }
    expect(await stage.run(['ls', '/'], { environment })).toMatchObject({ code: 0, out: 'zookeeper\n' })
  })

  it('a scheme in the address does without --tls, and a root stays a root', async () => {
    await stage.plant({ '/sub': null, '/sub/leaf': null })
    const server = `tls://${secure}/sub`
    expect(await stage.run(['ls', '/', '--server', server, ...trusting])).toMatchObject({ out: 'leaf\n' })
    expect((await stage.run(['ls', '/', '--tls', '--server', `${secure}/sub`, ...trusting])).out).toBe(
      'leaf\n',
    )
  })

  it('status asks members over TLS', async () => {
    expect(await stage.run(['status', secure, '--tls', ...trusting])).toMatchObject({
      code: 0,
      out: expect.stringContaining('standalone'),
    })
  })

  it('a server that is not trusted is no server, and a file that is none is a mistake', async () => {
    const ca = ['--ca', certificate('stranger-authority.pem'), '--cert', certificate('alice.pem')]
    expect(await stage.run(['ls', '--tls', '--server', secure, ...ca])).toMatchObject({ code: 8 })
    const none = await stage.run(['ls', '--tls', '--server', secure, '--ca', '/no/such.pem'])
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('/no/such.pem') })
    expect(await stage.run(['ls', '--server', 'http://localhost:1'])).toMatchObject({ code: 2 })
  })
})
