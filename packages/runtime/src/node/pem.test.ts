import { expect, it } from 'vitest'
import { pemBlocks } from './pem.ts'

const block = (label: string, text: string): string =>
  `-----BEGIN ${label}-----\n${text}\n-----END ${label}-----`

it('returns the blocks with a label that matches, and skips those without an end', () => {
  const [a, b, key] = [block('CERTIFICATE', 'a'), block('X509 CERTIFICATE', 'b'), block('PRIVATE KEY', 'k')]
  const text = `${a}\n-----BEGIN X509 CRL-----\n${key}${b}\n-----BEGIN CERTIFICATE-----\n`
  expect(pemBlocks(text, /CERTIFICATE$/)).toEqual([a, b])
  expect(pemBlocks(text, /^(?:[A-Z]+ )?PRIVATE KEY$/)).toEqual([key])
  expect(pemBlocks(text, /CRL$/)).toEqual([])
})
