/**
 * The schema language of the record table. A record lists its fields in wire order. TypeScript types are inferred from it, and the
 * codecs in `../gen` are generated from it. Nothing here runs when messages are read or written.
 */
declare const value: unique symbol

/** A wire type: its encoding, and for the type checker its type in memory. */
export interface Wire<T> {
  readonly as: string
  readonly of?: Wire<unknown>
  readonly [value]?: T
}

type Fields = { readonly [field: string]: Wire<unknown> }

/** A record: its fields in order, without tags, lengths or padding. */
export interface Rec<F extends Fields> extends Wire<{ readonly [K in keyof F]: TypeOf<F[K]> }> {
  readonly fields: F
}

/** The type of a wire type in memory. */
export type TypeOf<W> = W extends Wire<infer T> ? T : never

export const record = <const F extends Fields>(name: string, fields: F): Rec<F> => ({ as: name, fields })
export const bool: Wire<boolean> = { as: 'bool' }
export const byte: Wire<number> = { as: 'byte' }
export const int: Wire<number> = { as: 'int' }
/** 64 bits, signed. */
export const long: Wire<bigint> = { as: 'long' }
/** Bytes with a length; null and empty are different values. */
export const buffer: Wire<Uint8Array | null> = { as: 'buffer' }
/** Text with a length; null and empty are different values. */
export const ustring: Wire<string | null> = { as: 'string' }
/** A count and that many elements. A count of -1 is null, other negative counts read as empty. */
export const vector = <T>(of: Wire<T>): Wire<readonly T[] | null> => ({ as: 'vector', of })
