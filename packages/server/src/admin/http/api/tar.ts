const BLOCK = 512
/** Longest name: the format has a field of 100 bytes. */
const MAX_NAME = 100

/** Two empty blocks end an archive. */
export const TAR_END = new Uint8Array(2 * BLOCK)

/** Returns the header of a file in an archive of the format ustar. `name` is ASCII. */
export function tarHeader(name: string, size: number, modifiedAt: number): Uint8Array {
  if (name.length > MAX_NAME) throw new RangeError(`Expected a name of ${MAX_NAME} characters, got ${name}`)
  const header = new Uint8Array(BLOCK)
  const write = (text: string, at: number): void => {
    for (let i = 0; i < text.length; i++) header[at + i] = text.charCodeAt(i)
  }
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0')
  write(name, 0)
  write(octal(0o600, 7), 100)
  // Owner and group 0.
  write(octal(0, 7), 108)
  write(octal(0, 7), 116)
  write(octal(size, 11), 124)
  write(octal(Math.floor(modifiedAt / 1000), 11), 136)
  // The sum is that of a header with blanks in its place.
  write(' '.repeat(8), 148)
  write('0', 156)
  write('ustar\x0000', 257)
  write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  )
  return header
}

/** Returns the zeros behind a file of this size, which fill its last block. */
export const tarPadding = (size: number): Uint8Array => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK)
