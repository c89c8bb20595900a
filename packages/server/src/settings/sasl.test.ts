import { describe, expect, test } from 'vitest'
import { defaults } from './defaults.ts'
import { loadSettings } from './load.ts'
import { formatFinding } from './sources.ts'

const provider = 'authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider'
const module = 'org.apache.zookeeper.server.auth.DigestLoginModule'
const jaas = `Server {\n  ${module} required\n  user_bob="hunter2"\n  user_super="hunter3";\n};\n`

function load(lines: readonly string[], files: Record<string, string> = {}, JVMFLAGS = '') {
  const { settings, findings, origins } = loadSettings({
    file: { name: 'zoo.cfg', text: ['dataDir=/data', 'clientPort=2181', ...lines].join('\n') },
    environment: { JVMFLAGS },
    files: {
      read: (path) => files[path],
      resolve: (path) => (path.startsWith('/') ? path : `/here/${path}`),
    },
  })
  const reports = findings.map((finding) => `${finding.severity}: ${formatFinding(finding)}`)
  expect(reports.join('\n')).not.toContain('hunter')
  return { settings, reports, origins }
}

describe('SASL users', () => {
  test('are read from the section Server of a JAAS file', () => {
    const users = { bob: 'hunter2', super: 'hunter3' }
    const flag = '-Djava.security.auth.login.config='
    for (const path of [
      '/etc/jaas.conf',
      '=/etc/jaas.conf',
      'file:/etc/jaas.conf',
      '=file:///etc/jaas.conf',
    ]) {
      const { settings, reports, origins } = load([provider], { '/etc/jaas.conf': jaas }, `${flag}${path}`)
      expect(reports).toEqual([])
      expect(settings).toMatchObject({ saslUsers: users, saslAclScheme: true })
      expect(origins).toMatchObject({ saslUsers: 'JVMFLAGS', saslAclScheme: 'zoo.cfg:3' })
    }
    expect(load([provider, 'jaas.config=jaas.conf'], { '/here/jaas.conf': jaas }).settings).toMatchObject({
      saslUsers: users,
    })
  })

  test('are read from the section that sasl.serverconfig names', () => {
    const files = { '/j': `Zabra { ${module} required user_al="hunter2"; };` }
    const named = load(['jaas.config=/j', 'sasl.serverconfig=Zabra', provider], files)
    expect(named.settings?.saslUsers).toEqual({ al: 'hunter2' })
    expect(load(['jaas.config=/j', 'sasl.serverconfig=Other', provider], files).reports).toEqual([
      'error: /j: expected a section Other, got only Zabra. No client can log in by SASL; sasl.serverconfig can name another section.',
    ])
    const missing = load(['jaas.config=/j', provider], files)
    expect(missing.reports[0]).toContain('warning: /j: expected a section Server, got only Zabra')
    expect(missing.settings?.saslUsers).toEqual({})
  })

  test('are read from sasl.digest.users and from a file of users', () => {
    const { settings, reports } = load(
      ['sasl.digest.users=bob:hunter:2, al:hunter3', 'sasl.digest.usersFile=/users'],
      { '/users': '# comment\neve=hunter4\n' },
    )
    expect(reports).toEqual([])
    expect(settings).toMatchObject({
      saslUsers: { bob: 'hunter:2', al: 'hunter3', eve: 'hunter4' },
      saslAclScheme: true,
    })
    expect(Object.isFrozen(settings?.saslUsers)).toBe(true)
    expect(load(['sasl.digest.users=bob:hunter2', 'sasl.aclScheme=false']).settings?.saslAclScheme).toBe(
      false,
    )
    expect(defaults({ saslUsers: { bob: 'x' } }).saslAclScheme).toBe(true)
    expect(() => defaults({ saslUsers: { bob: '' } })).toThrow('not shown')
  })

  test.each([
    ['sasl.digest.users=hunter2', {}, 'zoo.cfg:3: sasl.digest.users: expected pairs name:password'],
    ['sasl.digest.users=a:hunter1,a:hunter2', {}, 'expected pairs name:password'],
    ['sasl.digest.usersFile=/none', {}, 'expected a file, but there is none at /none'],
    ['sasl.digest.usersFile=/u', { '/u': 'bob=hunter2\nal\n' }, '/u:2: expected name=password'],
    [
      'sasl.digest.usersFile=/u',
      { '/u': 'bob=hunter2\nbob=hunter3' },
      '/u:2: the SASL user "bob" has a password already, at /u:1',
    ],
    ['jaas.config=/none', {}, 'zoo.cfg:3: jaas.config: expected a file, but there is none at /none'],
    ['jaas.config=/j', { '/j': 'Server {\n hunter2' }, '/j:2: expected required, requisite'],
    [
      'jaas.config=/j',
      { '/j': 'Server { com.sun.security.auth.module.Krb5LoginModule required; };' },
      '/j:1: Kerberos is not supported',
    ],
    [
      'jaas.config=/j',
      { '/j': 'Server { com.example.Mine required; };' },
      `/j:1: expected the login module ${module}, got com.example.Mine`,
    ],
    [
      'jaas.config=/j',
      { '/j': `Server {\n ${module} required user_="hunter2"; };` },
      '/j:2: expected a name after user_',
    ],
    [
      'jaas.config=/j',
      { '/j': `Server { ${module} required user_a="\${hunter2}"; };` },
      'Write the password itself',
    ],
  ])('are rejected with the place of the error: %s', (line, files, expected) => {
    const { settings, reports } = load([line, provider], files as Record<string, string>)
    expect(settings).toBeUndefined()
    expect(reports).toHaveLength(1)
    expect(reports[0]).toContain(expected)
  })

  test('of a JAAS file cannot be named by access control lists without the provider, as in ZooKeeper', () => {
    const { settings, reports } = load(['jaas.config=/j'], { '/j': jaas })
    expect(settings?.saslAclScheme).toBe(false)
    expect(reports[0]).toContain(
      'warning: zoo.cfg:3: jaas.config: its users can log in, but access control lists cannot name them',
    )
  })

  test('log in with `fips-mode=true` too, as in ZooKeeper', () => {
    const { settings, reports } = load(['jaas.config=/j', provider, 'fips-mode=true'], { '/j': jaas })
    expect(settings?.saslUsers).not.toEqual([])
    expect(reports.join()).toContain('warning: zoo.cfg:5: fips-mode: ')
  })
})

describe('SASL settings', () => {
  test('superUser and every superUser.x name a superuser', () => {
    const { settings } = load(
      [provider, 'superUser=bob', 'superUser.2=al'],
      {},
      '-Dzookeeper.superUser.ops=eve',
    )
    expect(settings?.saslSuperUsers).toEqual(['bob', 'eve', 'al'])
  })

  test('a superPassword without a user super causes a warning', () => {
    const password = 'SASLAuthenticationProvider.superPassword=hunter9'
    expect(load([provider, 'jaas.config=/j', password], { '/j': jaas }).reports).toEqual([])
    expect(load([password]).reports[0]).toContain('has no effect: there is no SASL user named super')
  })

  test('a required login is rejected without users or provider', () => {
    const requireLogin = 'sessionRequireClientSASLAuth=true'
    expect(load([provider, requireLogin, 'jaas.config=/j'], { '/j': jaas }).settings?.requireSasl).toBe(true)
    expect(load([requireLogin, 'jaas.config=/j'], { '/j': jaas }).reports.join()).toContain(
      'needs the scheme sasl',
    )
    expect(load([provider, requireLogin]).reports.join()).toContain(
      'requires a login by SASL, but there are no users',
    )
    const schemes = ['enforce.auth.enabled=true', 'enforce.auth.schemes=sasl, digest']
    expect(load(schemes).reports.join()).toContain('zoo.cfg:4: enforce.auth.schemes: needs the scheme sasl')
    expect(load([...schemes, provider]).reports).toEqual([])
  })

  test('keys of Kerberos, and keys that ZooKeeper ignores, cause warnings', () => {
    const { settings, reports } = load([
      'jaasLoginRenew=3600000',
      'requireClientAuthScheme=sasl',
      'kinit=/bin/kinit',
    ])
    expect(settings).toBeDefined()
    expect(reports).toHaveLength(3)
  })
})
