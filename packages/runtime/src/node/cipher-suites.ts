import { getCiphers } from 'node:tls'

/** Returns OpenSSL's name of a cipher suite of the RFCs (`TLS_ECDHE_RSA_WITH_…`); undefined when OpenSSL does not have it. */
export function openSslName(suite: string): string | undefined {
  const name = /^TLS_(AES|CHACHA20)_/.test(suite) ? suite : translated(suite)
  return name !== undefined && getCiphers().includes(name.toLowerCase()) ? name : undefined
}

function translated(suite: string): string | undefined {
  const match = /^(?:TLS|SSL)_(.+)_WITH_(.+)$/.exec(suite)
  if (!match) return undefined
  const [, exchange = '', rest = ''] = match
  const cipher = rest
    .replace(/AES_(\d+)_/, 'AES$1_')
    .replace(/_CBC_/, '_')
    .replace(/^CHACHA20_POLY1305_SHA256$/, 'CHACHA20_POLY1305')
    .replace(/(CCM(?:_8)?)_SHA256$/, '$1')
    .replace('CCM_8', 'CCM8')
  const prefix = exchange === 'RSA' ? '' : `${exchange}_`
  return `${prefix}${cipher}`.replaceAll('_', '-')
}
