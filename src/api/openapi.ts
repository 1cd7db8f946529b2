// The OpenAPI document of the API, generated from the rows of its operations.

import { z } from 'zod'
import { OWN_PATHS } from '../paths.ts'
import { KEY_HEADER } from '../util/key-form.ts'
import { readVersion } from '../util/version.ts'
import type { Operation } from './context.ts'
import { PROBLEMS, type ProblemCode } from './problem.ts'
import { PARAMETERS, type ParameterName } from './query.ts'

const PREFIX = OWN_PATHS.api.replace(/\/$/, '')

const errorSchema = z
  .object({
    error: z.string().meta({ description: 'A fixed code.' }),
    message: z.string().meta({ description: 'For people, in the language of the pages.' }),
  })
  .meta({ id: 'Error' })

export const openApiSchema = z.looseObject({ openapi: z.string(), paths: z.looseObject({}) }).meta({ id: 'OpenApi' })

export function openApiDocument(operations: readonly Operation[], baseUrl: string): object {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations) {
    const path = PREFIX + operation.path
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: operationObject(operation) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Menshen administration',
      version: readVersion(),
      description:
        'Sessions, personal keys and the audit trail, for machines with `api` in the configuration. Times are UTC.',
    },
    servers: [{ url: new URL(baseUrl).origin }],
    security: [{ bearer: [] }, { header: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'The key of a machine.' },
        header: { type: 'apiKey', in: 'header', name: KEY_HEADER },
      },
      schemas: Object.assign({}, ...[errorSchema, ...operations.flatMap(({ answer }) => answer ?? [])].map(schemasIn)),
    },
  }
}

function operationObject({ id, path, summary, scope, parameters = [], required = [], answer }: Operation): object {
  const hasId = path.includes('{id}')
  const byQuery = [...required, ...parameters].map(name => parameterObject(name, required.includes(name)))
  const byPath = hasId ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] : []
  const problems: ProblemCode[] = [
    'bad_request',
    'invalid_key',
    'outside_network',
    ...(scope ? (['insufficient_scope'] as const) : []),
    ...(hasId ? (['not_found'] as const) : []),
    'too_many',
    'broken',
    'unavailable',
  ]
  return {
    operationId: id,
    summary: scope ? `${summary} Needs the scope \`${scope}\`.` : summary,
    ...(byPath.length + byQuery.length > 0 ? { parameters: [...byPath, ...byQuery] } : {}),
    responses: {
      ...(answer ? { 200: contentOf('OK', answer) } : { 204: { description: 'Done' } }),
      ...errorResponses(problems),
      default: contentOf('Any other error', errorSchema),
    },
  }
}

function parameterObject(name: ParameterName, required: boolean): object {
  const { description, schema } = PARAMETERS[name]
  return { name, in: 'query', required, description, schema }
}

/** One response per status; 403 has two codes. */
function errorResponses(codes: readonly ProblemCode[]): Record<string, object> {
  const byStatus = Map.groupBy(codes, code => PROBLEMS[code])
  return Object.fromEntries(
    [...byStatus].map(([status, each]) => [String(status), contentOf(`\`error\`: ${each.join(', ')}`, errorSchema)]),
  )
}

function contentOf(description: string, schema: z.ZodType): object {
  return { description, content: { 'application/json': { schema: { $ref: `#/components/schemas/${idOf(schema)}` } } } }
}

function idOf(schema: z.ZodType): string {
  return String(schema.meta()?.id)
}

/** The schema and the schemas that it refers to, keyed by name. */
function schemasIn(schema: z.ZodType): Record<string, object> {
  const { $defs = {} } = z.toJSONSchema(schema, { io: 'input' })
  return JSON.parse(JSON.stringify($defs).replaceAll('"#/$defs/', '"#/components/schemas/'))
}
