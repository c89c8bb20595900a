import { utf8, type Bytes, type Data } from '@zabra/client/core'

/** Returns data as it is stored: text as UTF-8, and none as no bytes. */
export const toBytes = (data: Data | undefined): Bytes =>
  typeof data === 'string' ? utf8.encode(data) : (data ?? new Uint8Array(0))
