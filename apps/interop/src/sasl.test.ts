import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DigestMd5Client } from '@zabra/protocol'
import { beforeAll, expect, it } from 'vitest'
import { describeWith, python } from './harness/requirements.ts'
import { bytes } from './harness/bytes.ts'
import { Client, ConnectionLost, createBody } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { apacheShell, reference, run, scratch, Server, serverUnderTest } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

const provider = {
  'authProvider.1': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider',
  superUser: 'root',
}
const requiringSasl = { ...provider, sessionRequireClientSASLAuth: 'true' }
const module = 'org.apache.zookeeper.server.auth.DigestLoginModule'
const users = {
  bob: 'se"cret; //',
  eve: 'hidden',
  root: 'toor',
  bjørn: 'pässwörd',
  łukasz: 'zażółć',
  'al@REALM': 'x',
}

let jaas = ''
let flags: string[] = []

beforeAll(() => {
  jaas = join(scratch('jaas'), 'jaas.conf')
  const quoted = (text: string): string => `"${text.replaceAll('"', '\\"')}"`
  const client = (section: string, name: string, password: string): string =>
    `"${section}" { ${module} required username=${quoted(name)} password=${quoted(password)}; };\n`
  writeFileSync(
    jaas,
    [
      `// The users of the server\nServer {\n  ${module} required\n`,
      ...Object.entries(users).map(([name, password]) => `    "user_${name}"=${quoted(password)}\n`),
      '  ;\n};\n',
      ...Object.entries(users).map(([name, password]) => client(`As_${name}`, name, password)),
      client('Wrong', 'bob', 'wrong'),
      client('Unknown', 'mallory', 'x'),
    ].join(''),
  )
  flags = [`-Djava.security.auth.login.config=${jaas}`]
})

async function kazoo(server: Server, ...logins: readonly string[]): Promise<string> {
  const script = resolve(import.meta.dirname, '../python/sasl.py')
  const { code, stdout, stderr } = await run(python, [script, server.address, ...logins])
  if (code !== 0) throw new Error(`kazoo ended with ${code}:\n${stdout}\n${stderr.slice(-3000)}`)
  return stdout.trimEnd()
}

describeWith(['apache', 'kazoo', 'pureSasl'], 'kazoo with SASL', () => {
  const logins = [`bob:${users.bob}`, 'eve:hidden', 'root:toor', '-', 'bob:wrong', 'mallory:x']
  it('authenticates or is refused alike, and ACLs apply', async () => {
    const { apache, zabra } = await onBoth((server) => kazoo(server, ...logins), provider, flags)
    expect(zabra).toEqual(apache)
    expect(zabra.at(-1)).toBe('end')
  })

  it('is refused without SASL where the server requires it', async () => {
    const { apache, zabra } = await onBoth(
      (server) => kazoo(server, ...logins.slice(0, 3)),
      requiringSasl,
      flags,
    )
    expect(zabra).toEqual(apache)
    expect(zabra.at(-1)).toBe('end')
  })
})

/** Runs commands in ZooKeeper's shell, authenticated by a section of the JAAS file, or unauthenticated. */
async function shell(server: Server, section: string, commands: readonly string[]): Promise<string> {
  const login =
    section === ''
      ? []
      : [`-Djava.security.auth.login.config=${jaas}`, `-Dzookeeper.sasl.clientconfig=${section}`]
  const args = [...login, ...apacheShell(server)]
  const { code, stdout, stderr } = await run('java', args, { input: `${commands.join('\n')}\nquit\n` })
  const lines = stdout.replaceAll(server.address, 'ADDRESS').split('\n')
  const raced = code === 0 ? /state:(Disconnected|Closed)/ : /state:(Disconnected|Closed|SyncConnected)/
  // Events come from another thread and identities from a hash table, so their order is not deterministic.
  const isEvent = (line: string): boolean => line.startsWith('WatchedEvent')
  const isIdentity = (line: string): boolean => /^(ip|sasl|super): /.test(line)
  const said = lines.filter((line) => line !== '' && line !== 'WATCHER::' && !isEvent(line))
  return [
    `--- ${section}: ${code}`,
    // Whether the shell prints the close of its connection, or the opening of one that is closed, is a race between its threads.
    ...lines.filter((line) => isEvent(line) && !raced.test(line)),
    ...said.filter(isIdentity).sort(),
    ...said.filter((line) => !isIdentity(line)),
    ...stderr.split('\n').filter((line) => !line.startsWith('SLF4J')),
  ].join('\n')
}

const commands = [
  'create /x',
  'whoami',
  'create /auth data auth::cdrwa',
  'getAcl /auth',
  'get /auth',
  'create /bob data sasl:bob:cdrwa',
  'setAcl /x sasl:a@b@c:r',
  'get /bob',
  'set /bob more',
]
const sections = ['As_bob', 'As_eve', 'As_root', 'As_bjørn', 'As_łukasz', '']
const refused = ['Wrong', 'Unknown']

async function shells(server: Server, names: readonly string[], given = commands): Promise<string> {
  const said: string[] = []
  for (const name of names) said.push(await shell(server, name, given))
  return said.join('\n')
}

describeWith(['apache'], "Apache ZooKeeper's shell with SASL", () => {
  it('prints the same for users, unauthenticated clients and refused logins', async () => {
    const all = [...sections, ...refused]
    const { apache, zabra } = await onBoth((server) => shells(server, all), provider, flags)
    expect(zabra).toEqual(apache)
    expect(zabra.filter((line) => line.startsWith('sasl: '))).toEqual(
      ['bob', 'eve', 'root', 'bjørn', 'łukasz'].map((name) => `sasl: ${name}`),
    )
    expect(zabra.filter((line) => line.includes('state:AuthFailed'))).toHaveLength(refused.length)
  })

  it('prints the same where the server requires SASL', async () => {
    const { apache, zabra } = await onBoth(
      async (server) =>
        `${await shells(server, ['As_bob'])}\n${await shells(server, [...refused, ''], ['ls /'])}`,
      requiringSasl,
      flags,
    )
    expect(zabra).toEqual(apache)
    expect(zabra).toContain('sasl: bob')
  })
})

type Step = 'ask' | 'answer' | 'noise' | 'empty' | 'check'

/** Authenticates step by step with DigestMd5Client. `check` verifies the server's proof. */
async function login(
  client: Client,
  steps: readonly Step[],
  name: string,
  password: string,
): Promise<string[]> {
  let nonces = 0
  const mechanism = new DigestMd5Client({ username: name, password, cnonce: () => `cnonce-${nonces++}` })
  const first = await mechanism.step()
  const said: string[] = []
  let token: Uint8Array | undefined = first
  for (const step of steps) {
    if (step === 'noise') token = Buffer.from('noise')
    else if (step === 'empty' || step === 'ask') token = new Uint8Array(0)
    else if (step === 'answer') token = await mechanism.step(token)
    else said.push(`verified ${(await mechanism.step(token)) === undefined}`)
    if (step === 'check') continue
    try {
      const { err, zxid, body } = await client.request(op.sasl, bytes().buffer(token!).done())
      const answer = body.buffer()
      token = answer ?? undefined
      const text = answer?.toString().replace(/nonce="[\w+/]{40}"/, 'nonce="NONCE"')
      said.push(`${step}: ${err} ${zxid} ${text?.replace(/rspauth=[0-9a-f]{32}$/, 'rspauth=PROOF')}`)
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
      said.push(`${step}: closed`)
    }
  }
  return said
}

async function logins(server: Server): Promise<string> {
  const said: string[] = []
  const right: readonly Step[] = ['ask', 'answer', 'check']
  for (const [steps, name, password] of [
    [right, 'bob', users.bob],
    [right, 'bjørn', users.bjørn],
    [right, 'łukasz', users.łukasz],
    [['noise', 'answer', 'check'], 'eve', users.eve],
    [[...right, 'ask'], 'eve', users.eve],
    [['ask', 'answer', 'ask', 'noise'], 'bob', 'wrong'],
    [['ask', 'answer', 'ask'], 'mallory', 'wrong'],
    [['ask', 'noise', 'ask'], 'bob', users.bob],
    [['ask', 'empty', 'ask'], 'bob', users.bob],
    [[], '', ''],
  ] as const) {
    const client = await Client.connect(server.port)
    said.push(`--- ${name}`, ...(await login(client, steps, name, password)))
    for (const [type, body] of [
      [op.whoAmI, bytes().done()],
      [op.create, createBody(`/${name}`, '', 0, [{ perms: 31, scheme: 'auth', id: '' }])],
      [op.getData, bytes().str('/bob').bool(false).done()],
      [op.ping, bytes().done()],
    ] as const) {
      const answered = client.request(type, body, ...(type === op.ping ? [-2] : [])).then(
        ({ err }) => `${type}: ${err}`,
        () => `${type}: closed`,
      )
      said.push(await answered)
    }
    client.drop()
  }
  return said.join('\n')
}

describeWith(['apache'], 'DigestMd5Client of @zabra/protocol', () => {
  it.each([
    ['with ACLs for SASL users', provider],
    ['without the ACL scheme sasl', { superUser: 'root' }],
    ['where the server requires SASL', requiringSasl],
    ['where a login may fail', { ...provider, allowSaslFailedClients: 'true' }],
    [
      'where the server requires SASL and a login may fail',
      { ...requiringSasl, allowSaslFailedClients: 'true' },
    ],
  ])('authenticates or is refused alike %s', async (_, config) => {
    const { apache, zabra } = await onBoth(logins, config, flags)
    expect(zabra).toEqual(apache)
    expect(zabra.filter((line) => line === 'verified true')).toHaveLength(5)
  })
})

const md5 = (data: string | Buffer): Buffer => createHash('md5').update(data).digest()

/** Returns a response to a challenge, independent of `@zabra/protocol`, with the deviations of a case. */
function craftResponse(challenge: Buffer, { name = 'eve', nc = 'nc=00000001,', authzid = '' }): string {
  const nonce = /nonce="([^"]+)"/.exec(challenge.toString())![1]!
  const realm = 'zk-sasl-md5'
  const uri = `zookeeper/${realm}`
  const secret = md5(`${name}:${realm}:${users[name as keyof typeof users]}`)
  const suffix = `:${nonce}:c${authzid === '' ? '' : `:${authzid}`}`
  const session = md5(Buffer.concat([secret, Buffer.from(suffix)])).toString('hex')
  const method = md5(`AUTHENTICATE:${uri}`).toString('hex')
  const response = md5(`${session}:${nonce}:00000001:c:auth:${method}`).toString('hex')
  const claim = authzid === '' ? '' : `,authzid="${authzid}"`
  return `username="${name}",realm="${realm}",nonce="${nonce}",cnonce="c",${nc}digest-uri="${uri}",response=${response}${claim}`
}

describeWith(['apache'], 'a DIGEST-MD5 response made by hand', () => {
  let servers: readonly Server[] = []
  beforeAll(async () => {
    servers = await Promise.all(
      [reference, serverUnderTest].map((kind) => Server.start({ kind, config: provider, javaFlags: flags })),
    )
  }, 120_000)

  let cases = 0
  it.each([
    ['is accepted with the required directives only', {}, '0 sasl:eve', '0 sasl:eve'],
    ['is refused without a nonce count', { nc: '' }, '0 sasl:eve', '-115 '],
    ['is refused with a nonce count of one digit', { nc: 'nc=1,' }, '0 sasl:eve', '-115 '],
    ['is refused with a nonce count that is no number', { nc: 'nc=x,' }, '0 sasl:eve', '-115 '],
    ['is accepted with any maxbuf', { nc: 'nc=00000001,maxbuf=x,' }, 'closed', '0 sasl:eve'],
    ['authenticates its username, whatever its authzid', { authzid: 'root' }, '0 sasl:eve', '0 sasl:eve'],
    [
      'authenticates its username also when it looks like a Kerberos principal',
      { name: 'al@REALM', authzid: 'bob' },
      '0 sasl:bob',
      '0 sasl:al@REALM',
    ],
    ['is accepted with a non-ASCII username in UTF-8', { name: 'bjørn' }, '-115 ', '0 sasl:bjørn'],
  ])('%s', async (_, deviation, ofApache, ofZabra) => {
    const path = `/mine-${cases++}`
    const outcomes = servers.map(async (server) => {
      const client = await Client.connect(server.port)
      const ask = (token: string) => client.request(op.sasl, bytes().buffer(token).done())
      const challenge = (await ask('')).body.buffer()!
      const reply = await ask(craftResponse(challenge, deviation)).catch(() => undefined)
      if (reply === undefined) return 'closed'
      if (reply.err !== 0) return `${reply.err} `
      const acl = [{ perms: 31, scheme: 'auth', id: '' }]
      await client.create(path, '', 0, acl)
      const { body } = await client.ok(op.getACL, bytes().str(path).done(), 'getACL')
      const [, , scheme, id] = [body.int(), body.int(), body.str(), body.str()]
      client.drop()
      return `0 ${scheme}:${id}`
    })
    expect(await Promise.all(outcomes)).toEqual([ofApache, ofZabra])
  })
})
