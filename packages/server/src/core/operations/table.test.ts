import { OpCode, Reader } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { SKIPPING } from './fields.ts'
import { isLogged, isRead, isWrite, operationOf, OPERATIONS } from './table.ts'

describe('the table of operations', () => {
  it('has one row for each op code of the protocol', () => {
    const codes = OPERATIONS.map(({ code }) => code)
    expect(codes.toSorted((a, b) => a - b)).toEqual(Object.values(OpCode).toSorted((a, b) => a - b))
    for (const operation of OPERATIONS) expect(operationOf(operation.code)).toBe(operation)
  })

  it('knows no operation for any other number', () => {
    for (const code of [-(2 ** 31), -17, -16, -2, 10, 23, 99, 127, 128, 2 ** 31 - 1]) {
      expect(operationOf(code).name).toBe('NA')
      expect([isRead(code), isWrite(code)]).toEqual([false, false])
    }
  })

  it('lets clients neither read nor write with the operations of servers and of authentication', () => {
    const others = Object.values(OpCode).filter((code) => !isRead(code) && !isWrite(code))
    expect(others.toSorted((a, b) => a - b)).toEqual([-10, -1, 0, 13, 20, 100, 102])
  })

  it('fails to decode the body of an operation that is no single write', () => {
    for (const code of [OpCode.multi, OpCode.closeSession, OpCode.exists, 99])
      expect(() => operationOf(code).decode(code, new Reader(new Uint8Array(8)), SKIPPING)).toThrow('op code')
  })

  it('logs what has a record, or a list that is decoded in steps, and no check alone', () => {
    for (const code of [...Object.values(OpCode), 120]) {
      const decode = (): unknown =>
        operationOf(code).decodeTxn(code, new Reader(new Uint8Array(0)), undefined)
      if (code === OpCode.multi || code === OpCode.closeSession) expect(isLogged(code)).toBe(true)
      else if (isLogged(code)) expect(decode).not.toThrow('Expected the type of a transaction')
      else if (code !== OpCode.check) expect(decode).toThrow('Expected the type of a transaction')
    }
    expect(isLogged(OpCode.check)).toBe(false)
  })

  it('gives every row the same shape, so that calls through the table stay fast', () => {
    const columns = new Set(OPERATIONS.map((operation) => Object.keys(operation).join()))
    expect(columns.size).toBe(1)
  })
})
