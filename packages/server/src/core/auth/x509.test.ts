import { describe, expect, it } from 'vitest'
import { identitiesOfCertificate, isDistinguishedName, type X509Rules } from './index.ts'

const rules: X509Rules = {
  superUser: undefined,
  idType: 'SDN',
  sanType: 6,
  sanMatch: '.*',
  sanExtract: '.*',
  sanGroup: 0,
}
const alice = {
  subject: 'CN=alice,O=Zabra',
  alternativeNames: [
    { type: 6, value: 'urn:zabra:(alice;tests)' },
    { type: 2, value: 'a.example' },
    { type: 2, value: 'b.example' },
  ],
}

describe('a certificate', () => {
  it('gives its subject as the identity', () => {
    expect(identitiesOfCertificate(alice, rules)).toEqual([{ scheme: 'x509', id: alice.subject }])
  })

  it('gives the super user too when its name is that of the super user', () => {
    expect(identitiesOfCertificate(alice, { ...rules, superUser: alice.subject })).toEqual([
      { scheme: 'super', id: alice.subject },
      { scheme: 'x509', id: alice.subject },
    ])
  })

  it.each([
    ['the whole URI', {}, 'urn:zabra:(alice;tests)'],
    ['a part of it', { sanExtract: '\\((.+);', sanGroup: 1 }, 'alice'],
    ['the one of two names that fits', { sanType: 2, sanMatch: '^b' }, 'b.example'],
    ['the subject where two names fit', { sanType: 2 }, alice.subject],
    ['the subject where none fits', { sanMatch: 'spiffe' }, alice.subject],
    ['the subject where nothing is extracted', { sanExtract: '(x)?', sanGroup: 1 }, alice.subject],
    ['the subject where what is extracted is empty', { sanExtract: 'x*' }, alice.subject],
    ['the subject where the pattern to extract does not fit', { sanExtract: 'nothing' }, alice.subject],
  ])('proves %s of its alternative names', (_, more, id) => {
    expect(identitiesOfCertificate(alice, { ...rules, idType: 'SAN', ...more })).toEqual([
      { scheme: 'x509', id },
    ])
  })
})

describe('an id of the scheme x509', () => {
  const right =
    '|CN=bob|cn=bob|CN=bob,OU=x, O=y|CN=bob+OU=z,C=DE|CN=bob;O=y|CN="a,b"|CN=a\\,b|CN=a\\2cb|1.2.3=#0403010203|1.2.3=abc|OID.1.2.3=abc|CN=|EMAILADDRESS=a@b|emailAddress=a@b|SERIALNUMBER=5|T=x|S=x|GIVENNAME=x|DNQ=x|UID=x|DC=x|STREET=x|IP=1|C=DEU|C=ü| CN = bob |CN=a#b|CN=#0c0161|CN=a=b|1.2=x|CN=a\nb|CN=a O=b|EMAIL=x|CN=a\\ |CN=  |ou=a+cn=b|CN=  "a"|CN="a" |CN=  #0c0161|CN=#0C0161|CN=#0c810161|CN=#04840000000161'
  const bytes = (count: number): string => '61'.repeat(count)
  it.each([...right.split('|'), `CN=#0481${'80'}${bytes(128)}`, `CN=#048201${'01'}${bytes(257)}`])(
    'may be %j, as in Java',
    (id) => {
      expect(isDistinguishedName(id)).toBe(true)
    },
  )

  const wrong =
    'bob| |1.2.3=#04|FOO=bar|CN|=x|CN=a,|CN=a,,O=b|E=a@b|SN=x|CN=a<b|CN=#61|CN=a"b|CN=a\\|CN=a+b|CN="a|CN="a"b|3.2=x|1=x|1.2.=x|title=x|CN=a\\zb|user|anyone|CN=a, |CN=a;|+|CN=a++O=b|CN=#|CN=#0c01zz|CN=#zz0161|CN=#0c0161a|CN=#0c0161 |CN=#0c81|CN=#0480|CN=#0c016161|CN=#0c820161|CN=#0485000000000161'
  it.each([...wrong.split('|'), `CN=#0480${bytes(128)}`, `CN=#048181${bytes(128)}`])(
    'may not be %j, as in Java',
    (id) => {
      expect(isDistinguishedName(id)).toBe(false)
    },
  )
})
