// The configuration of an identity provider: what menshen.config.ts can contain, what a preset is made of, and what the plan of a
// provider starts from. Everything here comes from the rows of provider-fields.ts.

import { z } from 'zod'
import {
  type accepted,
  FIELD_ROWS,
  PROVIDER_FIELDS,
  type ProviderFields,
  type sources,
  type USER_FIELDS,
} from './provider-fields.ts'

/** What an operator or a preset can set: any of the fields. */
export const providerObject = z.strictObject(schemasIn(PROVIDER_FIELDS))

function schemasIn<F extends object>(fields: F) {
  const rows: [string, { schema?: z.ZodType }][] = Object.entries(fields)
  const schemas = rows.flatMap(([key, { schema }]) => (schema ? [[key, schema.optional()]] : []))
  return Object.fromEntries(schemas) as {
    [K in keyof F as F[K] extends { schema: z.ZodType } ? K : never]: z.ZodOptional<SchemaOf<F[K]>>
  }
}

type SchemaOf<R> = R extends { schema: infer S extends z.ZodType } ? S : never

/** `F` are the fields of the user info that it maps. */
export type ProviderConfig<F extends string = string> = Omit<z.infer<typeof providerObject>, 'fields'> & {
  readonly fields?: { readonly [K in F]?: Sources | undefined } | undefined
}

type FieldKey = keyof typeof providerObject.shape
type KeyWithDefault = { [K in FieldKey]: ProviderFields[K] extends { default: unknown } ? K : never }[FieldKey]

/** A configuration with all defaults. Optional fields have none: absent is a value. */
export type CompleteProvider = {
  [K in KeyWithDefault]: ProviderFields[K] extends { complete: infer C extends z.ZodType }
    ? z.infer<C>
    : z.infer<SchemaOf<ProviderFields[K]>>
} & { [K in Exclude<FieldKey, KeyWithDefault>]?: z.infer<SchemaOf<ProviderFields[K]>> | undefined }

export const DEFAULTS = Object.fromEntries(
  FIELD_ROWS.flatMap(([key, row]) => (row.default === undefined ? [] : [[key, row.default]])),
) as CompleteProvider

/** The fields that the plan takes from the configuration unchanged. */
export type PlannedKey = {
  [K in FieldKey]: ProviderFields[K] extends { isConverted: true } | { endpoint: string } ? never : K
}[FieldKey]

export type EndpointName = {
  [K in FieldKey]: ProviderFields[K] extends { endpoint: infer E extends string } ? E : never
}[FieldKey]

export type Accepted = z.infer<typeof accepted>
export type Sources = z.infer<typeof sources>
export type UserField = (typeof USER_FIELDS)[number]
